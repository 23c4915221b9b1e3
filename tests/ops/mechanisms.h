#pragma once
// Every prior and every scale that has parameters, used as in a layer of attention, on any backend.

#include <vector>

#include "compare.h"
#include "core/options.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {

struct Mechanisms {
  const PriorInfo& prior;
  Options prior_options;
  const ScaleInfo& scale;
  Options scale_options;
  bool scale_bias = false;
  bool causal = true;  // of attention
};

/// Every prior in every form of its options without a scale, every scale without a prior, and
/// scaled biases of bam and of priors that return gradients of rows.
std::vector<Mechanisms> all_mechanisms();
/// Those with a formula for keys after the query, in bidirectional attention.
std::vector<Mechanisms> bidirectional_mechanisms();

/// The scratch memory that parameter_gradients needs from a machine.
WorkspaceShape mechanism_workspace(int64_t T);

/// lse and the gradients of all parameters, named "prior.NAME" and "scale.NAME", of one layer over
/// T tokens. Queries, keys, values and cotangents are bf16 normal numbers of variance 1.
Arrays parameter_gradients(Machine& m, const Mechanisms& of, int64_t T);

/// Without attention: "table" (H, distances) for a prior of family table, "scale" (B, H, T) for a
/// scale of kind length in documents of 700 tokens, and the gradients of their parameters, and of
/// those of family fire, with random cotangents.
Arrays tables_and_scales(Machine& m, const Mechanisms& of, int64_t B, int64_t T);

/// The norm of found - truth over that of truth, which must not be 0.
double relative_error(const std::vector<double>& found, const std::vector<double>& truth);

/// Checks that the relative error of each array of the two functions above is within `tolerance`.
/// Exception: the gradient of "fire.b2", a constant added to all logits, which is only rounding
/// error.
void check_near(const Arrays& found, const Arrays& truth, double tolerance);

}  // namespace bamtrain::testing

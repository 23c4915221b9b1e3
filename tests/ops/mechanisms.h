#pragma once
// Every prior and every scale that has parameters, as a layer of attention uses it, on any backend.

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
/// scaled biases of bam and of what returns gradients of rows.
std::vector<Mechanisms> all_mechanisms();
/// Those that know keys behind the query, in bidirectional attention.
std::vector<Mechanisms> bidirectional_mechanisms();

/// Scratch that parameter_gradients takes, of a machine.
WorkspaceShape mechanism_workspace(int64_t T);

/// lse, and the gradients of all parameters by "prior.name" and "scale.name", of one layer over T
/// tokens; queries, keys, values and cotangents are normal numbers of variance 1 which bf16 holds.
Arrays parameter_gradients(Machine& m, const Mechanisms& of, int64_t T);

/// Without attention: "table" (H, distances) of a prior of family table, "scale" (B, H, T) of a
/// scale of kind length in documents of 700 tokens, and the gradients of their parameters at random
/// cotangents.
Arrays tables_and_scales(Machine& m, const Mechanisms& of, int64_t B, int64_t T);

/// The norm of found - truth over that of truth, which is not 0.
double relative_error(const std::vector<double>& found, const std::vector<double>& truth);

/// Checks that the relative error of each array of the two functions above is within `tolerance`,
/// but of the gradient of "fire.b2", a constant added to all logits: rounding alone.
void check_near(const Arrays& found, const Arrays& truth, double tolerance);

}  // namespace bamtrain::testing

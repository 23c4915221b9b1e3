#pragma once
// The seam between a logit scale t_i and everything else: z = t_i s_ij + b_ij, or
// z = t_i (s_ij + b_ij) with scale_bias. A scale is one header in this folder and one line in
// registry.cpp. The kernels see t as a tensor (B, H, T) and return dt of the same shape.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "priors/prior.h"

namespace bamtrain {

/// What a scale's formula reads of its options, in an order that is its own.
struct ScaleConstants {
  double of[2] = {};
};

/// What t_i depends on.
enum class ScaleKind {
  none,      // nothing: t = 1, no tensor is formed
  length,    // n_i, by `value` and `accumulate`
  adaptive,  // n_i and gates of the row, see scales/adaptive.h
  entropy,   // the entropy of the row's softmax without a scale, see scales/entropy.h
};

/// One logit scale, type-erased. `theta` as in PriorInfo; n is n_i, the number of visible keys.
struct ScaleInfo {
  std::string name;
  std::string formula;
  ScaleKind kind = ScaleKind::none;
  bool evaluation_only = false;  // it has no backward pass
  std::vector<OptionSpec> options;
  std::vector<MechanismParameter> (*parameters)(const Options&, const PriorShape&) = nullptr;
  double (*initial)(const Options&, const PriorShape&, const MechanismParameter& p, int64_t i,
                    double uniform, double normal) = nullptr;
  /// Null: the formula reads none.
  ScaleConstants (*constants)(const Options&, const PriorShape&) = nullptr;

  /// Kind length: t for head h and a row that sees n keys.
  double (*value)(const ScaleConstants&, const double* const* theta, int64_t h,
                  int64_t n) = nullptr;
  /// Its adjoint: adds to dtheta[p][...] what dt at (h, n) gives.
  void (*accumulate)(const ScaleConstants&, const double* const* theta, int64_t h, int64_t n,
                     double dt, double* const* dtheta) = nullptr;
  /// The largest n that it knows; null: it knows all.
  int64_t (*longest)(const ScaleConstants&) = nullptr;
  /// Whether the bias is scaled too, where the config leaves it open. Null: it is not.
  bool (*default_scale_bias)(const std::string& prior) = nullptr;
};

const std::vector<ScaleInfo>& all_scales();
const ScaleInfo* find_scale(const std::string& name);

}  // namespace bamtrain

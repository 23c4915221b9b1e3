#pragma once
// The interface of a logit scale t_i: z = t_i s_ij + b_ij, or z = t_i (s_ij + b_ij) with
// scale_bias. A scale consists of a .cpp in this folder that declares it, and its place in
// registry.cpp. Its formula and derivative for host and device, if it has one, are in a header.
// length_scales.h lists those of a few scalars per head. Kernels read t as a tensor
// (B, H, T) and return dt of the same shape.

#include <cstdint>
#include <string>
#include <variant>

#include "core/formula_constants.h"
#include "core/mechanism.h"

namespace bamtrain {

// What t_i depends on. std::monostate: nothing, t = 1 and no tensor is formed.

/// n_i, the number of visible keys. `theta` as in priors/prior.h. scales/length_scale.h builds the
/// hooks from a formula with a few scalars per head.
struct LengthKind {
  /// t for head h and a row that sees n keys.
  double (*value)(const FormulaConstants&, const double* const* theta, int64_t h,
                  int64_t n) = nullptr;
  /// Its adjoint: adds the gradient of dt at (h, n) to dtheta[p][...].
  void (*accumulate)(const FormulaConstants&, const double* const* theta, int64_t h, int64_t n,
                     double dt, double* const* dtheta) = nullptr;
  /// The largest n that is defined; null: no limit.
  int64_t (*longest)(const FormulaConstants&) = nullptr;
};
/// n_i and gates of the row; see scales/adaptive.h.
struct AdaptiveKind {};
/// The entropy of the row's unscaled softmax; see scales/entropy.h.
struct EntropyKind {};

using ScaleKind = std::variant<std::monostate, LengthKind, AdaptiveKind, EntropyKind>;

/// One logit scale, type-erased.
struct ScaleInfo : MechanismInfo {
  ScaleKind kind;
  bool evaluation_only = false;  // it has no backward pass
  /// Null: the formula has no constants.
  FormulaConstants (*constants)(const Options&, const ModelShape&) = nullptr;
  /// Whether the bias is scaled too if the config does not say. Null: no.
  bool (*default_scale_bias)(const std::string& prior) = nullptr;

  /// The hooks of this kind; null if the scale is of another.
  template <class K>
  const K* as() const {
    return std::get_if<K>(&kind);
  }
  template <class K>
  bool is() const {
    return std::holds_alternative<K>(kind);
  }
  FormulaConstants constants_of(const Options& o, const ModelShape& shape) const {
    return constants ? constants(o, shape) : FormulaConstants();
  }
};

/// The option scale_bias. `where_auto`: the meaning of auto.
OptionSpec scale_bias_option(const std::string& where_auto);

}  // namespace bamtrain

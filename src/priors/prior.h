#pragma once
// The seam between a positional prior and everything else. A prior is one header in this folder
// (formula, derivative, parameters, initial values) and one line in registry.cpp.
//
// A prior reaches the logits in one of these ways (its Family):
//   none       nothing to add
//   table      b_ij = table[h][d], d = i - j: the prior gives bias(d) and accumulate(dz, d); the
//              kernels see a (H, T) table and return its gradient, the sums of dz along diagonals
//   sums       b_ij from S_j - S_i, S the running sum of a softplus of gates: products of the
//              attention's input with a matrix of the prior; the kernels see S (B, H, T)
//   fire       b_ij = f(psi(d) / N_i), f a small network: piecewise linear, see priors/fire.h
//   rotary     q and k are rotated before the kernel and their gradients are rotated back after it
//   embedding  a function of the position is added to the token embedding
// Families still to come (priors with a kernel of their own) join the enum and the attention
// arguments of ops/ops.h; the priors here do not change.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/host_device.h"
#include "core/options.h"

namespace bamtrain {

enum class Family { none, table, sums, fire, rotary, embedding };

/// b_ij of family sums, x = S_j - S_i <= 0.
enum class SumBias {
  difference,  // x
  log_square,  // -log(1 + x^2)
};

/// What a prior may know of the model when it sizes and initialises its parameters.
struct PriorShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t width = 0;
  int64_t sequence_length = 0;  // T in training
};

/// What the hooks of a table prior fill or read.
struct TableShape {
  int64_t H = 0, T = 0;
  int form = 0;     // PriorInfo::form
  double gain = 1;  // PriorInfo::gain
};

/// Which rules of the optimizer apply to a parameter.
enum class ParameterGroup { matrix, embedding, norm, bias, prior, scale };

/// A parameter of a prior or scale, one per layer, or one for the model where `shared`.
struct MechanismParameter {
  std::string name;            // last part of the checkpoint name, e.g. "theta_alpha"
  std::vector<int64_t> shape;  // e.g. {H}
  bool trained = true;         // false: fixed at its initial value, but stored all the same
  bool shared = false;         // one for all layers
  std::string init;            // the rule, for init_value and for the documentation
  // The optimizer keeps every element between these.
  double minimum = -INFINITY, maximum = INFINITY;
  // (H, C): multiplied with the attention's input it makes a column of gates per head.
  bool gate = false;
  bool decays = false;  // weight decay acts on it
};

/// Of mechanisms with trained parameters: whether weight decay acts on them. `parameters` names
/// those whose `decays` the option sets, then any that it leaves out: "weight, not on bias".
/// `fallback_1` is the option's default in config_version 1.
inline OptionSpec decay_option(const std::string& parameters, bool fallback,
                               bool fallback_1 = false) {
  OptionSpec o = {"decay", "weight decay acts on " + parameters, fallback};
  if (fallback_1 != fallback) o.fallback_1 = fallback_1;
  return o;
}

/// One prior, type-erased. The functions for families that do not apply are null.
///
/// `theta` holds the prior's parameters in the order of `parameters()`, each a pointer to its
/// elements as doubles (kernels work on rounded tables; formulas are evaluated in fp64 because a
/// table is small and a distance is exact).
struct PriorInfo {
  std::string name;
  std::string formula;  // one line, for --print-schema and the README
  Family family = Family::none;
  std::vector<OptionSpec> options;

  /// Parameters, in the order of `theta`. Validates options against the shape: Error
  /// (ExitCode::config).
  std::vector<MechanismParameter> (*parameters)(const Options&, const PriorShape&) = nullptr;
  /// Element `i` of the initial value of parameter `p`; the caller provides random numbers:
  /// `uniform` in [0, 1) and `normal` belong to (seed, full parameter name, i).
  double (*initial)(const Options&, const PriorShape&, const MechanismParameter& p, int64_t i,
                    double uniform, double normal) = nullptr;

  /// family table. table: (H, T), table[h * T + d] = b at distance d.
  void (*table)(const double* const* theta, const TableShape&, double* table) = nullptr;
  /// Its adjoint: adds to dtheta[p][...] what dtable (H, T) gives to each parameter.
  void (*table_adjoint)(const double* const* theta, const TableShape&, const double* dtable,
                        double* const* dtheta) = nullptr;
  /// Which of its formulas the options choose; null: it has one, form 0.
  int (*form)(const Options&) = nullptr;
  /// What the options multiply the formula by; null: 1.
  double (*gain)(const Options&, const PriorShape&) = nullptr;
  /// Scales act on this head of H and those behind it; null: on all.
  int64_t (*first_scaled_head)(int64_t H) = nullptr;

  /// family sums.
  SumBias sum_bias = SumBias::difference;

  /// What <q_i, k_j> is multiplied by; 0, or null: 1 / sqrt(head_dim).
  double (*content_scale)(const Options&, const PriorShape&) = nullptr;

  /// family fire: L0.
  double (*threshold_length)(const Options&, int64_t T) = nullptr;

  /// family rotary: angle per unit of position of each pair (D/2 values); `T` in training.
  std::vector<double> (*inverse_frequencies)(const Options&, int64_t D, int64_t T) = nullptr;
  /// What rotated queries and keys are multiplied by; null: 1.
  double (*rotary_amplitude)(const Options&) = nullptr;
  /// L: a training sequence's positions are a random subset of [0, L), those of an evaluation stay
  /// below L. 0: positions count tokens. Null: 0.
  int64_t (*randomized_positions)(const Options&, int64_t T) = nullptr;

  /// The window (key visible iff i - j < window) of layers with this prior where the model's config
  /// sets `all` for all layers, 0: none. Null: that one.
  int64_t (*window)(const Options&, int64_t T, int64_t all) = nullptr;
  int64_t window_of(const Options& o, int64_t T, int64_t all) const {
    return window ? window(o, T, all) : all;
  }

  /// family embedding: what is added to channel c at a position. Null where the prior's only
  /// parameter, a table (positions, C), is added instead.
  double (*embedding)(const Options&, int64_t position, int64_t c, int64_t C) = nullptr;
};

/// What the table hooks of a prior with these options read of a model, for T distances.
inline TableShape table_shape(const PriorInfo& prior, const Options& options,
                              const PriorShape& shape, int64_t T) {
  return {shape.heads, T, prior.form ? prior.form(options) : 0,
          prior.gain ? prior.gain(options, shape) : 1};
}

}  // namespace bamtrain

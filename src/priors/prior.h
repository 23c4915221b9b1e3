#pragma once
// The seam between a positional prior and everything else. A prior is a header in this folder
// (formula and derivative, for host and device), a .cpp beside it that declares the rest (options,
// parameters, initial values, hooks), and a line in registry.cpp. Those of family table have one in
// table_priors.h too.
//
// A prior reaches the logits in one of these ways (its family):
//   none       nothing to add
//   table      b_ij = table[h][d], d = i - j: the prior gives bias(d) and accumulate(dz, d); the
//              kernels see a (H, T) table and return its gradient, the sums of dz along diagonals.
//              In bidirectional attention the table goes from d = -(T - 1) on
//   sums       b_ij from S_j - S_i, S the running sum of a softplus of gates: products of the
//              attention's input with a matrix of the prior; the kernels see S (B, H, T)
//              (formula.h: any formula of a number per token is a family as this)
//   fire       b_ij = f(psi(d) / N_i), f a small network: piecewise linear, see priors/fire.h
//   transformer_xl  b_ij of products of q_i and k_j with vectors, one of them by distance: see
//              ops/mechanisms/transformer_xl.h
//   contextual b_ij = <q_i, E[p_ij]>, p_ij a sum of gates that the row's scores open: see
//              ops/mechanisms/cope.h
//   rotary     q and k are rotated before the kernel and their gradients are rotated back after it
//   embedding  a function of the position is added to the token embedding
// Families still to come join the list below; the priors here do not change.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/mechanism.h"
#include "priors/formula.h"
#include "priors/randomized.h"

namespace bamtrain {

/// What the hooks of a table prior fill or read.
struct TableShape {
  int64_t H = 0, T = 0;
  int form = 0;          // TableFamily::form
  double gain = 1;       // TableFamily::gain
  int64_t first = 0;     // of its T distances; below 0 they are those of keys behind the query
  double asymmetry = 0;  // TableFamily::asymmetry, where attention is not causal
};

/// `theta` holds the prior's parameters in the order of `parameters()`, each a pointer to its
/// elements as doubles (kernels work on rounded tables; formulas are evaluated in fp64 because a
/// table is small and a distance is exact). priors/table_prior.h makes one from a formula.
struct TableFamily {
  /// table (H, T): table[h * T + n] = b at distance first + n.
  void (*table)(const double* const* theta, const TableShape&, double* table) = nullptr;
  /// Its adjoint: adds to dtheta[p][...] what dtable (H, T) gives to each parameter.
  void (*adjoint)(const double* const* theta, const TableShape&, const double* dtable,
                  double* const* dtheta) = nullptr;
  /// Which of its formulas the options choose; null: it has one, form 0.
  int (*form)(const Options&) = nullptr;
  /// What the options multiply the formula by; null: 1.
  double (*gain)(const Options&, const ModelShape&) = nullptr;
  /// What bidirectional attention takes off the distance of keys before the query; null: nothing.
  double (*asymmetry)(const Options&) = nullptr;
  /// b of head h at distance d alone: what table has there, without the table.
  double (*bias)(const double* const* theta, const TableShape&, int64_t h, int64_t d) = nullptr;
};

/// Parameters: the gates' weight (H, C) and their bias (H).
struct SumsFamily {
  Formula bias = Formula::difference;
  /// What <q_i, k_j> is multiplied by; 0: 1 / sqrt(head_dim).
  double (*content_scale)(const Options&, const ModelShape&) = nullptr;
};

/// Parameters: those of FireParameters, c and m first.
struct FireFamily {
  double (*threshold_length)(const Options&, int64_t T) = nullptr;  // L0
  double (*negative_slope)(const Options&) = nullptr;               // FireParameters
};

/// Parameters: w_r (H D, C), then u and w (H, D).
struct TransformerXlFamily {
  /// What w_r multiplies at a distance: its channel c of C.
  double (*sinusoid)(int64_t distance, int64_t c, int64_t C) = nullptr;
};
/// Parameter: E (head_dim, positions).
struct ContextualFamily {};

struct RotaryFamily {
  /// Angle per unit of position of each pair (D/2 values); `T` in training.
  std::vector<double> (*inverse_frequencies)(const Options&, int64_t D, int64_t T) = nullptr;
  /// What rotated queries and keys are multiplied by.
  double (*amplitude)(const Options&) = nullptr;
};

struct EmbeddingFamily {
  /// What is added to channel c at a position. Null where the prior's only parameter, a table
  /// (positions, C), is added instead.
  double (*value)(const Options&, int64_t position, int64_t c, int64_t C) = nullptr;
};

/// Every family, once.
using Family = std::variant<std::monostate, TableFamily, SumsFamily, FireFamily,
                            TransformerXlFamily, ContextualFamily, RotaryFamily, EmbeddingFamily>;

/// One prior, type-erased.
struct PriorInfo : MechanismInfo {
  Family family;
  bool causal_only = false;  // it has no formula for keys behind the query

  /// Scales act on this head of H and those behind it; null: on all.
  int64_t (*first_scaled_head)(int64_t H) = nullptr;
  /// The window (key visible iff i - j < window) of layers with this prior where the model's config
  /// sets `all` for all layers, 0: none. Null: that one.
  int64_t (*window)(const Options&, int64_t T, int64_t all) = nullptr;

  /// What of it can be random, by the options of randomized.h; none: nothing can.
  std::optional<Randomized> randomized;
  Randomization randomization(const Options& o, int64_t T) const {
    return randomized ? randomization_of(o, T, *randomized) : Randomization();
  }

  /// The hooks of this family; null: the prior is of another.
  template <class F>
  const F* as() const {
    return std::get_if<F>(&family);
  }
  template <class F>
  bool is() const {
    return std::holds_alternative<F>(family);
  }
  /// Whether it adds to the logits: it does not rotate, nor add to the embedding, nor do nothing.
  bool adds_bias() const {
    return !is<std::monostate>() && !is<RotaryFamily>() && !is<EmbeddingFamily>();
  }
  int64_t window_of(const Options& o, int64_t T, int64_t all) const {
    return window ? window(o, T, all) : all;
  }
};

/// What the table hooks of a prior with these options read of a model, for T distances.
inline TableShape table_shape(const PriorInfo& prior, const Options& options,
                              const ModelShape& shape, int64_t T) {
  TableShape out = {shape.heads, T};
  const TableFamily* const family = prior.as<TableFamily>();
  if (family && family->form) out.form = family->form(options);
  if (family && family->gain) out.gain = family->gain(options, shape);
  if (family && family->asymmetry && !shape.causal) out.asymmetry = family->asymmetry(options);
  return out;
}

}  // namespace bamtrain

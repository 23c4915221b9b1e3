#pragma once
// The interface of a positional prior. A prior consists of a .cpp in this folder (options,
// parameters, initial values, hooks) and its place in registry.cpp. Its formula and derivative for
// host and device, if it has one, are in a header. Priors of family table also have a line in
// table_priors.h.
//
// A prior reaches the logits in one of these ways (its family):
//   none       nothing to add
//   table      b_ij = table[h][d], d = i - j. The prior provides bias(d) and accumulate(dz, d);
//              kernels read a (H, T) table and return its gradient, the sums of dz along diagonals.
//              In bidirectional attention the table starts at d = -(T - 1)
//   sums       b_ij from S_j - S_i, where S is the running sum of a softplus of gates. Gates are
//              products of the attention's input with a matrix of the prior; kernels read S
//              (B, H, T). See formula.h: any formula of one number per token fits this family
//   fire       b_ij = f(psi(d) / N_i), f a small piecewise linear network, see priors/fire.h
//   transformer_xl  b_ij from products of q_i and k_j with vectors, one of which depends on the
//              distance: see ops/mechanisms/transformer_xl.h
//   contextual b_ij = <q_i, E[p_ij]>, where p_ij is a sum of gates computed from the row's scores:
//              see ops/mechanisms/cope.h
//   rotary     q and k are rotated before the kernel; their gradients are rotated back after it
//   embedding  a function of the position is added to the token embedding
// New families join the list below; existing priors do not change.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/mechanism.h"
#include "priors/formula.h"
#include "priors/randomized.h"

namespace bamtrain {

/// Arguments of the hooks of a table prior.
struct TableShape {
  int64_t H = 0, T = 0;
  int form = 0;          // TableFamily::form
  double gain = 1;       // TableFamily::gain
  int64_t first = 0;     // first of its T distances; negative ones are of keys after the query
  double asymmetry = 0;  // TableFamily::asymmetry, set where attention is not causal
};

/// `theta` holds the prior's parameters in the order of `parameters()`, each a pointer to its
/// elements as doubles. Formulas are evaluated in fp64, since tables are small and distances are
/// exact; kernels use the rounded tables. priors/table_prior.h builds the hooks from a formula.
struct TableFamily {
  /// table (H, T): table[h * T + n] = b at distance first + n.
  void (*table)(const double* const* theta, const TableShape&, double* table) = nullptr;
  /// The adjoint of `table`: adds the gradients of dtable (H, T) to dtheta[p][...].
  void (*adjoint)(const double* const* theta, const TableShape&, const double* dtable,
                  double* const* dtheta) = nullptr;
  /// The index of the formula that the options choose; null: there is one formula, form 0.
  int (*form)(const Options&) = nullptr;
  /// The factor of the formula, from the options; null: 1.
  double (*gain)(const Options&, const ModelShape&) = nullptr;
  /// Subtracted from the distance of keys before the query in bidirectional attention; null:
  /// nothing.
  double (*asymmetry)(const Options&) = nullptr;
  /// b of head h at distance d: the value that `table` writes there.
  double (*bias)(const double* const* theta, const TableShape&, int64_t h, int64_t d) = nullptr;
};

/// Parameters: the gates' weight (H, C) and their bias (H).
struct SumsFamily {
  Formula bias = Formula::difference;
  /// The factor of <q_i, k_j>; 0: 1 / sqrt(head_dim).
  double (*content_scale)(const Options&, const ModelShape&) = nullptr;
};

/// Parameters: those of FireParameters, c and m first.
struct FireFamily {
  double (*threshold_length)(const Options&, int64_t T) = nullptr;  // L0
  double (*negative_slope)(const Options&) = nullptr;               // FireParameters
};

/// Parameters: w_r (H D, C), then u and w (H, D).
struct TransformerXlFamily {
  /// Channel c of C of the vector that w_r multiplies at this distance.
  double (*sinusoid)(int64_t distance, int64_t c, int64_t C) = nullptr;
};
/// Parameter: E (head_dim, positions).
struct ContextualFamily {};

struct RotaryFamily {
  /// Angle per unit of position of each pair (D/2 values). `T` is the training length.
  std::vector<double> (*inverse_frequencies)(const Options&, int64_t D, int64_t T) = nullptr;
  /// The factor of rotated queries and keys.
  double (*amplitude)(const Options&) = nullptr;
};

struct EmbeddingFamily {
  /// Added to channel c at this position. If null, the prior's only parameter, a table (positions,
  /// C), is added instead.
  double (*value)(const Options&, int64_t position, int64_t c, int64_t C) = nullptr;
};

/// Every family, once.
using Family = std::variant<std::monostate, TableFamily, SumsFamily, FireFamily,
                            TransformerXlFamily, ContextualFamily, RotaryFamily, EmbeddingFamily>;

/// One prior, type-erased.
struct PriorInfo : MechanismInfo {
  Family family;
  bool causal_only = false;  // the formula is not defined for keys after the query

  /// Scales act on heads from this one on, of H; null: on all heads.
  int64_t (*first_scaled_head)(int64_t H) = nullptr;
  /// The window (key visible iff i - j < window) of layers with this prior. `all`: the window that
  /// the model's config sets for all layers; 0: no window. If null, the window is `all`.
  int64_t (*window)(const Options&, int64_t T, int64_t all) = nullptr;

  /// What the options of randomized.h can randomize; empty: nothing.
  std::optional<Randomized> randomized;
  Randomization randomization(const Options& o, int64_t T) const {
    return randomized ? randomization_of(o, T, *randomized) : Randomization();
  }

  /// The hooks of this family; null if the prior belongs to another.
  template <class F>
  const F* as() const {
    return std::get_if<F>(&family);
  }
  template <class F>
  bool is() const {
    return std::holds_alternative<F>(family);
  }
  /// Whether it adds to the logits, unlike rotary and embedding priors and the empty family.
  bool adds_bias() const {
    return !is<std::monostate>() && !is<RotaryFamily>() && !is<EmbeddingFamily>();
  }
  int64_t window_of(const Options& o, int64_t T, int64_t all) const {
    return window ? window(o, T, all) : all;
  }
};

/// The TableShape of a prior with these options in a model, for T distances.
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

#pragma once
// Lists every bias that attention reads and every operation of a mechanism.

#include <variant>

#include "ops/mechanisms/alpha.h"
#include "ops/mechanisms/cope.h"
#include "ops/mechanisms/fire.h"
#include "ops/mechanisms/gated_rows.h"
#include "ops/mechanisms/scale.h"
#include "ops/mechanisms/sums.h"
#include "ops/mechanisms/table.h"
#include "ops/mechanisms/tokens.h"
#include "ops/mechanisms/transformer_xl.h"

namespace bamtrain {

/// No bias, and its gradients.
struct Nothing {
  using Gradients = Nothing;
  template <class Add>
  void plan(const AttentionShape&, Dtype, Add&&) {}
  template <class Arguments>
  void on_cuda(Arguments&) const {}
  autodiff::Vars in_reference(const AttentionRow& row, const Nothing&) const;
};

template <class... B>
struct BiasesOf {
  using Any = std::variant<B...>;
  using Gradients = std::variant<typename B::Gradients...>;
  /// Calls f.template operator()<B>() for each.
  template <class F>
  static void each(F&& f) {
    (f.template operator()<B>(), ...);
  }
};
using EveryBias = BiasesOf<Nothing, TableBias, TokenBias, FireBias, RelativeBias, ContextualBias>;
using MechanismOperation =
    std::variant<TableForward, TableBackward, ScaleForward, ScaleBackward, EntropyScale,
                 GatedRowsForward, GatedRowsBackward, SumsForward, SumsBackward, AlphaForward,
                 AlphaBackward, FireForward, FireBackward>;

/// Whether a bias type reads queries and keys, beyond their product.
template <class B>
constexpr bool reads_content() {
  if constexpr (requires { B::kReadsContent; }) return B::kReadsContent;
  return false;
}
inline bool reads_content(const EveryBias::Any& bias) {
  return std::visit([]<class B>(const B&) { return reads_content<B>(); }, bias);
}

/// Every form of bias.
enum class BiasForm { none, table, difference, log_square, fire, relative, contextual };

struct NamedBias {
  const char* name;
  EveryBias::Any bias;  // without tensors
};
/// In the order of BiasForm.
inline const NamedBias kBiasForms[] = {
    {"none", Nothing{}},
    {"table", TableBias{}},
    {"difference", TokenBias{{}, Formula::difference}},
    {"log_square", TokenBias{{}, Formula::log_square}},
    {"fire", FireBias{}},
    {"relative", RelativeBias{}},
    {"contextual", ContextualBias{}},
};
inline BiasForm form_of(Formula f) {
  return f == Formula::difference ? BiasForm::difference : BiasForm::log_square;
}
inline const char* name_of(BiasForm f) { return kBiasForms[static_cast<int>(f)].name; }
inline const EveryBias::Any& bias_of(BiasForm f) { return kBiasForms[static_cast<int>(f)].bias; }

}  // namespace bamtrain

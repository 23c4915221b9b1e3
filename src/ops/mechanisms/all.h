#pragma once
// Every bias that attention reads and every operation of a mechanism, once: those of the mechanisms
// that meson.build names.

#include <variant>

#include "ops/mechanism_lists.h"

namespace bamtrain {

/// A bias that is not there, and its gradients.
struct Nothing {
  using Gradients = Nothing;
  template <class X, class F>
  static void each(X&, F&&) {}
  template <class Add>
  void plan(const AttentionShape&, Dtype, Add&&) {}
  template <class Arguments>
  void on_cuda(Arguments&) const {}
  double in_reference(const LogitPlace&) const { return 0; }
  void adjoint_in_reference(const Nothing&, const LogitPlace&, double) const {}
};

template <class First, class... Rest>
struct BiasesOf {
  using Any = std::variant<First, Rest...>;
  using Gradients = std::variant<typename First::Gradients, typename Rest::Gradients...>;
};
template <class, class... Rest>
struct OperationsOf {
  using Any = std::variant<Rest...>;
};
#define BAMTRAIN_ALTERNATIVE(type) , type
using EveryBias = BiasesOf<Nothing BAMTRAIN_BIASES(BAMTRAIN_ALTERNATIVE)>;
using MechanismOperation = OperationsOf<void BAMTRAIN_OPERATIONS(BAMTRAIN_ALTERNATIVE)>::Any;
#undef BAMTRAIN_ALTERNATIVE

/// Whether a bias reads queries and keys beside their product, by its type.
template <class B>
constexpr bool reads_content() {
  if constexpr (requires { B::kReadsContent; }) return B::kReadsContent;
  return false;
}
inline bool reads_content(const EveryBias::Any& bias) {
  return std::visit([]<class B>(const B&) { return reads_content<B>(); }, bias);
}

/// Every form of bias, once. X(form, bias): the bias without its tensors.
#define BAMTRAIN_BIAS_FORMS(X) X(none, Nothing{}) BAMTRAIN_FORMS_OF_BIASES(X)

}  // namespace bamtrain

#pragma once
// Every bias that attention reads and every operation of a mechanism, once.

#include <variant>

#include "ops/mechanisms/alpha.h"
#include "ops/mechanisms/fire.h"
#include "ops/mechanisms/scale.h"
#include "ops/mechanisms/sums.h"
#include "ops/mechanisms/table.h"

namespace bamtrain {

using MechanismOperation =
    std::variant<TableForward, TableBackward, ScaleForward, ScaleBackward, AdaptiveScaleForward,
                 AdaptiveScaleBackward, EntropyScale, SumsForward, SumsBackward, AlphaForward,
                 AlphaBackward, FireForward, FireBackward>;

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

template <class... B>
struct Biases {
  using Any = std::variant<Nothing, B...>;
  using Gradients = std::variant<Nothing, typename B::Gradients...>;
};
using EveryBias = Biases<TableBias, SumsBias, FireBias>;

/// Every form of bias, once. X(form, bias): the bias without its tensors.
#define BAMTRAIN_BIAS_FORMS(X)                       \
  X(none, Nothing{})                                 \
  X(table, TableBias{})                              \
  X(difference, (SumsBias{{}, SumBias::difference})) \
  X(log_square, (SumsBias{{}, SumBias::log_square})) \
  X(fire, FireBias{})

}  // namespace bamtrain

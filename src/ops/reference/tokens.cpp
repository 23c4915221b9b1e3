#include "ops/mechanisms/tokens.h"

#include "ops/reference/autodiff.h"
#include "ops/reference/formulas.h"
#include "ops/reference/place.h"

namespace bamtrain {

using namespace reference;

namespace {

/// b of a logit, from the dual numbers of its row and key.
Dual bias_at(const TokenBias& bias, const LogitPlace& p, double of_row, double of_key) {
  const Tensor& numbers = bias.numbers;
  const double* n = f64(numbers) + p.batch * numbers.stride[0] + p.h * numbers.stride[1];
  const Dual row(n[p.past + p.i], of_row), key(n[p.j], of_key);
  const auto d = static_cast<double>(p.distance());
  Dual b;
  with_formula(bias.formula, [&]<class Of>() { b = formula_of(Of(), row, key, d); });
  return b;
}

}  // namespace

double TokenBias::in_reference(const LogitPlace& p) const { return bias_at(*this, p, 0, 0).x; }

void TokenBias::adjoint_in_reference(const Gradients& g, const LogitPlace& p, double db) const {
  f64(g.dnumbers)[p.of_key()] += db * bias_at(*this, p, 0, 1).d;
  f64(g.dnumbers)[p.of_row()] += db * bias_at(*this, p, 1, 0).d;
}

}  // namespace bamtrain

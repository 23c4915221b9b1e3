#pragma once
// The scalar factors of an optimizer step, shared by all backends.

#include <cmath>

#include "ops/ops.h"

namespace bamtrain {

/// Clamps w to its limits; NaN stays NaN.
template <class Real>
Real limited(Real w, Real minimum, Real maximum) {
  return w < minimum ? minimum : w > maximum ? maximum : w;
}

struct OptimizerStep {
  OptimizerKind kind = OptimizerKind::adamw;
  int64_t step = 1;                 // t, from 1
  double lr = 0, weight_decay = 0;  // decoupled: w -= lr * weight_decay * w before the step
  OptimizerHyperparameters rule;
};

/// w -= decay * w;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// w -= step_size * m / (sqrt(v) * v_scale + eps), or w -= step_size * m where !adaptive.
struct OptimizerFactors {
  double decay = 0;
  double step_size = 0;
  double v_scale = 0;
  bool adaptive = true;
};

/// The layout that Backend::optimizer_step reads.
constexpr int64_t kOptimizerFactors = 4;
inline void write_factors(const OptimizerFactors& f, double* out) {
  out[0] = f.decay;
  out[1] = f.step_size;
  out[2] = f.v_scale;
  out[3] = f.adaptive ? 1 : 0;
}
inline OptimizerFactors read_factors(const double* in) { return {in[0], in[1], in[2], in[3] != 0}; }

inline OptimizerFactors optimizer_factors(const OptimizerStep& s) {
  const double t = static_cast<double>(s.step);
  const double correction1 = 1 - std::pow(s.rule.beta1, t);
  const double correction2 = 1 - std::pow(s.rule.beta2, t);
  OptimizerFactors f;
  f.decay = s.lr * s.weight_decay;
  f.v_scale = 1 / std::sqrt(correction2);
  f.step_size = s.lr / correction1;
  if (s.kind == OptimizerKind::radam) {
    // Length of the approximated simple moving average (Liu et al. 2020, equation 5). For rho <= 5
    // the variance of the adaptive term is intractable: momentum only (PyTorch's threshold).
    const double rho_inf = 2 / (1 - s.rule.beta2) - 1;
    const double rho = rho_inf - 2 * t * std::pow(s.rule.beta2, t) / correction2;
    f.adaptive = rho > 5;
    if (f.adaptive) {
      // PyTorch adds eps to sqrt(v), before the bias correction.
      f.v_scale = 1;
      f.step_size *= std::sqrt(correction2);
      f.step_size *=
          std::sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho));
    }
  }
  return f;
}

}  // namespace bamtrain

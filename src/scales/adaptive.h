#pragma once
// t_i = delta + beta_i log(n_i + 1)^gamma_i with beta = softplus(u) and gamma = g tanh(w). u and w
// are gates: products of the attention's input with one column each per head (ASEntmax, equations 8
// and 9; ASSMax with softmax).

#include <cmath>

#include "core/host_device.h"
#include "priors/softplus.h"
#include "scales/scale.h"

namespace bamtrain {

struct Adaptive {
  static constexpr int kGates = 2;
  double delta, g;  // constants 0 and 1

  BAMTRAIN_HD explicit Adaptive(const FormulaConstants& c) : delta(c.of[0]), g(c.of[1]) {}
  BAMTRAIN_HD static double log_length(int64_t n) { return log(static_cast<double>(n) + 1); }
  /// t of a row that sees n keys, from its gates u and w.
  BAMTRAIN_HD double value(const double* gates, int64_t n) const {
    const double u = gates[0], w = gates[1];
    return delta + softplus(u) * pow(log_length(n), g * tanh(w));
  }
  /// dt times the derivatives with respect to u and w.
  BAMTRAIN_HD void adjoint(double dt, const double* gates, int64_t n, double* d) const {
    const double u = gates[0], w = gates[1];
    const double gamma = g * tanh(w), power = pow(log_length(n), gamma);
    const double dgamma = g * (1 - tanh(w) * tanh(w));
    d[0] = dt * power * sigmoid(u);
    d[1] = dt * softplus(u) * power * log(log_length(n)) * dgamma;
  }
};

}  // namespace bamtrain

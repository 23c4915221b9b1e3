#include "core/student_t.h"

#include <cmath>
#include <initializer_list>

namespace bamtrain {

namespace {

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), by
/// Lentz's method; it converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kNear = 1e-15;
  constexpr int kMost = 10000;
  const auto apart = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / apart(1 - (a + b) * x / (a + 1)), f = d;
  for (int m = 1; m <= kMost; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / apart(1 + term * d);
      c = apart(1 + term / c);
      change = c * d;
      f *= change;
    }
    if (std::abs(change - 1) < kNear) break;
  }
  return f;
}

/// I_x(a, b), regularized.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_two_sided(double t, double freedom) {
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

}  // namespace bamtrain

#include "study/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

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

SeedSample sample_of(std::span<const double> values) {
  require(!values.empty(), "a value");
  SeedSample s;
  s.count = static_cast<int>(values.size());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == *most) {  // summation could differ from the value by a rounding error
    s.mean = *least;
    if (s.count > 1) s.standard_deviation = 0;
    return s;
  }
  for (const double v : values) s.mean += v / s.count;
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  s.standard_deviation = std::sqrt(squares / (s.count - 1));
  return s;
}

double student_two_sided(double t, double freedom) {
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

std::optional<double> welch_p(const SeedSample& a, const SeedSample& b) {
  if (!a.standard_deviation || !b.standard_deviation) return std::nullopt;
  const double va = *a.standard_deviation * *a.standard_deviation / a.count,
               vb = *b.standard_deviation * *b.standard_deviation / b.count;
  if (!(va + vb > 0)) return std::nullopt;
  const double t = (a.mean - b.mean) / std::sqrt(va + vb);
  const double freedom =
      (va + vb) * (va + vb) / (va * va / (a.count - 1) + vb * vb / (b.count - 1));
  return student_two_sided(t, freedom);
}

}  // namespace bamtrain

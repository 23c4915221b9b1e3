#pragma once
// Dual numbers (value and derivative): the reference's formulas are written once, and their
// gradients follow.

#include <cmath>

namespace bamtrain::dual {

/// x, and dx/dp for one parameter p that the caller chooses.
struct Dual {
  double x = 0, d = 0;
  Dual() = default;
  Dual(double value) : x(value) {}  // a constant; NOLINT(google-explicit-constructor)
  Dual(double value, double derivative) : x(value), d(derivative) {}
};

inline Dual operator+(Dual a, Dual b) { return {a.x + b.x, a.d + b.d}; }
inline Dual operator-(Dual a, Dual b) { return {a.x - b.x, a.d - b.d}; }
inline Dual operator-(Dual a) { return {-a.x, -a.d}; }
inline Dual operator*(Dual a, Dual b) { return {a.x * b.x, a.d * b.x + a.x * b.d}; }
inline Dual operator/(Dual a, Dual b) { return {a.x / b.x, (a.d - a.x / b.x * b.d) / b.x}; }
inline Dual exp(Dual a) { return {std::exp(a.x), std::exp(a.x) * a.d}; }
inline Dual log(Dual a) { return {std::log(a.x), a.d / a.x}; }
/// log(1 + a).
inline Dual log1p(Dual a) { return {std::log1p(a.x), a.d / (1 + a.x)}; }
inline Dual tanh(Dual a) {
  const double t = std::tanh(a.x);
  return {t, (1 - t * t) * a.d};
}
/// The derivative at 0 is 0, between those of the two sides.
inline Dual abs(Dual a) { return {std::abs(a.x), a.x > 0 ? a.d : a.x < 0 ? -a.d : 0}; }
/// a^b for a >= 0; 0^b is the constant 0.
inline Dual pow(Dual a, Dual b) {
  if (a.x == 0) return 0;
  return exp(b * log(a));
}
/// log(1 + exp(a)), with the larger exponential factored out.
inline Dual softplus(Dual a) { return a.x > 0 ? a + log1p(exp(-a)) : log1p(exp(a)); }

}  // namespace bamtrain::dual

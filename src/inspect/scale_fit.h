#pragma once
// Fits a head's logit scale t to the number of visible keys n (ASEntmax, figure 3 and appendix
// F.1), by least squares over the rows that see at least two keys:
//
//   linear  t = delta + beta n
//   log     t = delta + beta log n                (SSMax's form)
//   power   t = delta + beta (log n)^gamma        (ASEntmax's form)
//
// R2 = 1 - sum of squared residuals / sum of squares of t around its mean.

#include <cstdint>
#include <optional>
#include <vector>

namespace bamtrain {

struct Fit {
  double delta = 0, beta = 0;
  double gamma = 1;  // only in the power form
  double r2 = 0;

  double linear(double n) const { return delta + beta * n; }
  /// For the log and power forms.
  double power(double n) const;
};

struct ScaleFits {
  Fit linear, log, power;
};

/// gamma is in [-kMostGamma, kMostGamma].
inline constexpr double kMostGamma = 8;

/// Fits the points (keys, t). Returns nullopt for fewer than four distinct numbers of keys from 2
/// on, and if t is constant or not finite.
std::optional<ScaleFits> fit_scale(const std::vector<int64_t>& keys, const std::vector<double>& t);

}  // namespace bamtrain

#pragma once
// How a head's logit scale follows the number of visible keys (ASEntmax, figure 3 and appendix
// F.1), by least squares over the rows that see two keys or more:
//
//   linear  t = delta + beta n
//   log     t = delta + beta log n                (SSMax's form)
//   power   t = delta + beta (log n)^gamma        (ASEntmax's form)
//
// R2 = 1 - the residuals' sum of squares over that of t around its mean.

#include <cstdint>
#include <optional>
#include <vector>

namespace bamtrain {

struct Fit {
  double delta = 0, beta = 0;
  double gamma = 1;  // of the power form
  double r2 = 0;

  double linear(double n) const { return delta + beta * n; }
  /// Of log and power.
  double power(double n) const;
};

struct ScaleFits {
  Fit linear, log, power;
};

/// gamma from -kMostGamma to kMostGamma.
inline constexpr double kMostGamma = 8;

/// Of points (keys, t). None for fewer than four different numbers of keys from 2 on, and where t
/// is the same everywhere, or not finite.
std::optional<ScaleFits> fit_scale(const std::vector<int64_t>& keys, const std::vector<double>& t);

}  // namespace bamtrain

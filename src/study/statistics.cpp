#include "study/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/student_t.h"

namespace bamtrain {

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

#include "report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace bamtrain {

namespace {

constexpr double kSpare = 1.0 / 25;
// Range in which differences of doubles, and powers of ten near them, are meaningful.
constexpr double kLeastValue = 1e-150, kMostValue = 1e150;
constexpr double kLeastShare = 1e-12;      // smallest difference, relative to the values
constexpr double kLargestWritten = 1e9;    // from here on in exponent notation
constexpr double kSmallestWritten = 1e-5;  // below in exponent notation

/// Decades of ticks: all that a logarithmic axis touches.
int first_decade(const Axis& a) { return static_cast<int>(std::floor(std::log10(a.low))); }
int last_decade(const Axis& a) { return static_cast<int>(std::floor(std::log10(a.high))); }

double power_of_ten(int n) { return std::pow(10.0, n); }

std::vector<double> linear_ticks(const Axis& axis, int most) {
  const double length = axis.high - axis.low;
  for (int n = static_cast<int>(std::floor(std::log10(length / most)));; ++n) {
    for (const int of : {1, 2, 5}) {
      // Count multiples, and divide for negative powers: 3 / 10 is the double 0.3, 3 * 0.1 is not.
      const auto value = [&](double i) {
        return n < 0 ? i * of / power_of_ten(-n) : i * of * power_of_ten(n);
      };
      const double step = value(1);
      const double first = std::ceil(axis.low / step), last = std::floor(axis.high / step);
      if (last - first >= most) continue;
      std::vector<double> out;
      for (int i = 0; i <= static_cast<int>(last - first); ++i) {
        out.push_back(value(first + i) + 0.0);  // no -0
      }
      return out;
    }
  }
}

std::vector<double> logarithmic_ticks(const Axis& axis, const std::vector<int>& of, int every) {
  std::vector<double> out;
  for (int n = first_decade(axis); n <= last_decade(axis); ++n) {
    if (((n % every) + every) % every != 0) continue;
    for (const int m : of) {
      const double value = n < 0 ? m / power_of_ten(-n) : m * power_of_ten(n);
      if (value >= axis.low && value <= axis.high) out.push_back(value);
    }
  }
  return out;
}

}  // namespace

double Axis::share(double value) const {
  if (spacing == Spacing::linear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

bool has_place(double value) { return std::abs(value) <= kMostValue; }

Axis axis_over(Spacing spacing, const std::vector<double>& values) {
  double low = INFINITY, high = -INFINITY;
  for (const double value : values) {
    if (!has_place(value)) continue;
    const double v = std::abs(value) < kLeastValue ? 0 : value;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const bool equal = high - low <= kLeastShare * std::max(std::abs(low), std::abs(high));
  if (low > high) return spacing == Spacing::linear ? Axis{spacing, 0, 1} : Axis{spacing, 1, 10};
  if (spacing == Spacing::logarithmic && low > 0) {
    // A single value is centered, with a tenth of it on both sides.
    const double spare = equal ? 1.1 : std::pow(high / low, kSpare);
    return {spacing, low / spare, high * spare};
  }
  const double spare = equal ? (low == 0 ? 1 : std::abs(low) / 10) : (high - low) * kSpare;
  return {Spacing::linear, low - spare, high + spare};
}

std::vector<double> ticks(const Axis& axis, int most) {
  require(most >= 2 && axis.low < axis.high, "an axis with room for ticks");
  if (axis.spacing == Spacing::logarithmic) {
    std::vector<double> out = logarithmic_ticks(axis, {1, 2, 5}, 1);
    for (int every = 1; static_cast<int>(out.size()) > most; ++every) {
      out = logarithmic_ticks(axis, {1}, every);
    }
    if (out.size() >= 3) return out;
  }
  return linear_ticks(axis, most);
}

std::string number_text(double value, int digits) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size >= kLargestWritten || (size > 0 && size < kSmallestWritten)) {
    return fmt::format("{:.{}g}", value, digits);
  }
  const int whole = size < 1 ? 1 : static_cast<int>(std::floor(std::log10(size))) + 1;
  // Count decimals from the first nonzero digit.
  const int leading = size > 0 && size < 1 ? static_cast<int>(std::floor(-std::log10(size))) : 0;
  const int decimals = size < 1 ? digits + leading : std::max(0, digits - whole);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  size_t point = text.find('.');
  if (point == std::string::npos) point = text.size();
  const size_t begin = text[0] == '-' ? 1 : 0;
  for (size_t at = point; at > begin + 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace bamtrain

#pragma once
// Axes of pictures: where a value lies, where ticks are and what they say.

#include <string>
#include <vector>

namespace bamtrain {

enum class Spacing { linear, logarithmic };

/// From `low` to `high`, low < high; both > 0 where it is logarithmic.
struct Axis {
  Spacing spacing = Spacing::linear;
  double low = 0, high = 1;

  /// 0 at `low`, 1 at `high`.
  double share(double value) const;
};

/// Whether an axis may have a place for the value: none for those beyond 1e150, infinities and NaN.
bool has_place(double value);

/// An axis that holds all `values` with 1/25 of its length to spare on either side; of none, from 0
/// to 1 (1 to 10); of values that differ by 1e-12 of themselves at most, as of one, in the middle.
/// Values at or below 0 make a logarithmic axis linear. Those without a place are left out; those
/// within 1e-150 of 0 are 0.
Axis axis_over(Spacing spacing, const std::vector<double>& values);

/// Round values inside `axis`, ascending, at most `most` (at least 2): multiples of 1, 2 or 5 times
/// a power of ten. On a logarithmic axis 1, 2 and 5 times each power of ten, or the powers alone,
/// or every n-th of them; where that leaves fewer than three, those of a linear axis.
std::vector<double> ticks(const Axis& axis, int most);

/// "12,345", "0.0005", "1.5e-09", "3.2e+09": `digits` significant digits at most, without trailing
/// zeros; commas between thousands.
std::string number_text(double value, int digits = 6);

}  // namespace bamtrain

#pragma once
// Axes of charts: positions of values, and positions and labels of ticks.

#include <string>
#include <vector>

namespace bamtrain {

enum class Spacing { linear, logarithmic };

/// From `low` to `high`, low < high; both > 0 if logarithmic.
struct Axis {
  Spacing spacing = Spacing::linear;
  double low = 0, high = 1;

  /// Position of a value: 0 at `low`, 1 at `high`.
  double share(double value) const;
};

/// Whether an axis can show the value: not beyond 1e150, infinite or NaN.
bool has_place(double value);

/// An axis that holds all `values`, with 1/25 of its length to spare on either side. Without values
/// it is 0 to 1 (logarithmic: 1 to 10). Values within a relative 1e-12 count as a single one, which
/// is centered. Values at or below 0 make a logarithmic axis linear. Values that an axis cannot
/// show (has_place) are skipped; those within 1e-150 of 0 count as 0.
Axis axis_over(Spacing spacing, const std::vector<double>& values);

/// Round values inside `axis`, ascending, at most `most` (at least 2): multiples of 1, 2 or 5 times
/// a power of ten. A logarithmic axis has 1, 2 and 5 times each power of ten, or only the powers,
/// or every n-th power; if fewer than three remain, it gets linear ticks.
std::vector<double> ticks(const Axis& axis, int most);

/// "12,345", "0.0005", "1.5e-09", "3.2e+09": at most `digits` significant digits, no trailing
/// zeros, commas between thousands.
std::string number_text(double value, int digits = 6);

}  // namespace bamtrain

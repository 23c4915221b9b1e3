#pragma once
// Downsampling of curves for drawing.

#include <cstddef>
#include <vector>

#include "report/axis.h"

namespace bamtrain {

struct Point {
  double x = 0, y = 0;
};

/// The points of a curve, ascending in x, that are visible in `columns` pixel columns: in each
/// column the first, lowest, highest and last, in order. No peak is lost and nothing is averaged:
/// every point is one of the curve's. `x`: the chart's axis.
std::vector<Point> downsampled(const std::vector<Point>& curve, const Axis& x, int columns);

}  // namespace bamtrain

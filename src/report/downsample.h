#pragma once
// Downsampling of curves for drawing.

#include <cstddef>
#include <vector>

#include "report/axis.h"

namespace bamtrain {

struct Point {
  double x = 0, y = 0;
};

/// The points of a curve, ascending in x, that its picture in `columns` columns of pixels shows: of
/// each column the first, the lowest, the highest and the last, in their order. So no peak is lost
/// and nothing is averaged. `y` is theirs; points are values of the curve, never new ones.
std::vector<Point> downsampled(const std::vector<Point>& curve, const Axis& x, int columns);

}  // namespace bamtrain

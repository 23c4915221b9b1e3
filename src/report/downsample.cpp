#include "report/downsample.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace bamtrain {

std::vector<Point> downsampled(const std::vector<Point>& curve, const Axis& x, int columns) {
  const auto column = [&](size_t i) {
    return std::floor(x.share(curve[i].x) * static_cast<double>(columns));
  };
  std::vector<Point> out;
  for (size_t begin = 0, end = 0; begin < curve.size(); begin = end) {
    size_t low = begin, high = begin;
    for (end = begin; end < curve.size() && column(end) == column(begin); ++end) {
      if (curve[end].y < curve[low].y) low = end;
      if (curve[end].y > curve[high].y) high = end;
    }
    std::array<size_t, 4> kept = {begin, low, high, end - 1};
    std::sort(kept.begin(), kept.end());
    for (size_t k = 0; k < kept.size(); ++k) {
      if (k == 0 || kept[k] != kept[k - 1]) out.push_back(curve[kept[k]]);
    }
  }
  return out;
}

}  // namespace bamtrain

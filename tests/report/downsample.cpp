#include "report/downsample.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/rng.h"

using namespace bamtrain;

namespace {

std::vector<Point> noise(int n) {
  const Rng rng(1, "thin");
  std::vector<Point> out;
  for (int i = 0; i < n; ++i) {
    out.push_back({static_cast<double>(i), rng.uniform(static_cast<uint64_t>(i))});
  }
  return out;
}

bool same(const std::vector<Point>& a, const std::vector<Point>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Point& p, const Point& q) { return p.x == q.x && p.y == q.y; });
}

}  // namespace

TEST_CASE("a curve of no more than a point per column stays as it is") {
  const std::vector<Point> curve = noise(100);
  CHECK(same(downsampled(curve, {Spacing::linear, 0, 100}, 100), curve));
  CHECK(downsampled({}, {Spacing::linear, 0, 1}, 10).empty());
}

TEST_CASE("of each column the first, lowest, highest and last point remain, in order") {
  const std::vector<Point> curve = {{0, 5},  {1, 9},  {2, 7},  {3, 1}, {4, 6},  // column 0
                                    {10, 2}, {11, 3}, {12, 4},                  // column 1
                                    {29, 8}};                                   // column 2
  const std::vector<Point> expected = {{0, 5}, {1, 9}, {3, 1}, {4, 6}, {10, 2}, {12, 4}, {29, 8}};
  CHECK(same(downsampled(curve, {Spacing::linear, 0, 30}, 3), expected));
}

TEST_CASE("a long curve keeps every column's range and few points") {
  const int n = 100'000, columns = 338;
  const std::vector<Point> curve = noise(n);
  const Axis x = {Spacing::linear, 0, n};
  const std::vector<Point> drawn = downsampled(curve, x, columns);
  CHECK(drawn.size() <= 4 * static_cast<size_t>(columns));
  const auto ranges = [&](const std::vector<Point>& points) {
    std::vector<std::pair<double, double>> out(static_cast<size_t>(columns), {2, -1});
    for (const Point& p : points) {
      auto& [low, high] = out[static_cast<size_t>(std::floor(p.x * columns / n))];
      low = std::min(low, p.y);
      high = std::max(high, p.y);
    }
    return out;
  };
  CHECK((ranges(drawn) == ranges(curve)));
}

// Numbers of paths, compared with closed forms.

#include "inspect/paths.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"

namespace bamtrain {
namespace {

/// Adds a layer whose row i sees `window` keys, the last of them key i.
double add_layer(Paths& paths, int64_t T, int64_t window) {
  for (int64_t i = 0; i < T; ++i) {
    std::vector<char> live(static_cast<size_t>(T), 0);
    for (int64_t j = std::max<int64_t>(0, i - window + 1); j <= i; ++j) {
      live[static_cast<size_t>(j)] = 1;
    }
    CHECK(paths.add_row(i, live) == std::min(window, i + 1));
  }
  return paths.end_layer();
}

TEST_CASE("dense causal layers have binomially many paths") {
  // Nonincreasing sequences of L tokens that end at or below the last of T: C(T - 1 + L, L).
  Paths paths(10);
  CHECK(add_layer(paths, 10, 10) == Approx(std::log10(10)));
  CHECK(add_layer(paths, 10, 10) == Approx(std::log10(55)));
  CHECK(add_layer(paths, 10, 10) == Approx(std::log10(220)));
}

TEST_CASE("paths are counted past what any number holds") {
  // Every token leads to all ten: 10^L.
  Paths paths(10);
  double log10_paths = 0;
  for (int layer = 0; layer < 6000; ++layer) {
    for (int64_t i = 0; i < 10; ++i) paths.add_row(i, std::vector<char>(10, 1));
    log10_paths = paths.end_layer();
  }
  CHECK(log10_paths == Approx(6000));
}

TEST_CASE("a row without weight leads to itself") {
  Paths paths(3);
  for (int64_t i = 0; i < 3; ++i) CHECK(paths.add_row(i, {0, 0, 0}) == 1);
  CHECK(paths.end_layer() == 0);
}

}  // namespace
}  // namespace bamtrain

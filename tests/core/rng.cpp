#include "core/rng.h"

#include <cmath>
#include <vector>

#include "catch.h"

using namespace bamtrain;

TEST_CASE("Philox 4x32-10 reproduces the published known answers") {
  // Random123, kat_vectors.
  using C = std::array<uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == C{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        C{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        C{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("FNV-1a reproduces the published values") {
  CHECK(fnv1a64("") == 0xcbf29ce484222325ull);
  CHECK(fnv1a64("a") == 0xaf63dc4c8601ec8cull);
  CHECK(fnv1a64("foobar") == 0x85944171f73967e8ull);
}

TEST_CASE("streams have the moments of their distributions and differ by seed and name") {
  const Rng rng(3, "weights");
  const int n = 200000;
  double mean = 0, square = 0, uniform = 0, uniform_square = 0;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<uint64_t>(i);
    mean += rng.normal(k) / n;
    square += rng.normal(k) * rng.normal(k) / n;
    uniform += rng.uniform(k) / n;
    uniform_square += rng.uniform(k) * rng.uniform(k) / n;
  }
  // Five standard errors of each estimate.
  CHECK(std::fabs(mean) < 5 / std::sqrt(n));
  CHECK(std::fabs(square - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::fabs(uniform - 0.5) < 5 * std::sqrt(1 / 12.0 / n));
  CHECK(std::fabs(uniform_square - 1 / 3.0) < 5 * std::sqrt(4 / 45.0 / n));
  CHECK(Rng(3, "weights").bits(9) == rng.bits(9));
  CHECK(Rng(4, "weights").bits(9) != rng.bits(9));
  CHECK(Rng(3, "weight").bits(9) != rng.bits(9));
}

TEST_CASE("below is uniform over its range and never leaves it") {
  const Rng rng(1, "range");
  std::vector<int> counts(7, 0);
  for (uint64_t i = 0; i < 70000; ++i) {
    const uint64_t x = rng.below(i, 7);
    REQUIRE(x < 7);
    ++counts[x];
  }
  for (int c : counts) CHECK(std::abs(c - 10000) < 5 * std::sqrt(10000 * 6 / 7.0));
}

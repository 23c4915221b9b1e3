// The index of a row's largest element, on the engine.

#include "kernels/argmax.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "engine/support.h"
#include "kernels/device.cuh"

using namespace bamtrain;
using engine::GlobalArray;
using engine::ScopedOptions;

namespace {

using Rows = std::vector<std::vector<float>>;

/// The padding between rows is larger than all elements.
std::vector<int32_t> places_of(const Rows& rows, size_t padding = 3) {
  const size_t V = rows[0].size(), row = V + padding;
  std::vector<float> all(rows.size() * row, 1e30f);
  for (size_t r = 0; r < rows.size(); ++r) std::copy(rows[r].begin(), rows[r].end(), &all[r * row]);
  const GlobalArray<float> x(all);
  GlobalArray<int32_t> places(rows.size());
  REQUIRE(kernels::argmax(places.data(), x.data(), static_cast<int64_t>(rows.size()),
                          static_cast<int64_t>(V), static_cast<int64_t>(row), nullptr)
              .ok());
  return places.values();
}

}  // namespace

TEST_CASE("the place of the largest element, of equal ones of the first") {
  const Rng rng(3, "argmax");
  uint64_t n = 0;
  for (const size_t V : {1, 2, 31, 33, 255, 256, 257, 1000, 5000}) {
    Rows rows(4, std::vector<float>(V));
    for (auto& row : rows) {
      // Few distinct values, so many are equal.
      for (float& x : row) x = static_cast<float>(rng.below(n++, 50)) - 40;
    }
    std::vector<int32_t> truth;
    for (const auto& row : rows) {
      truth.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    }
    INFO("V " << V);
    for (const engine::Options& o : engine::schedules()) {
      const ScopedOptions with(o);
      CHECK(places_of(rows) == truth);
    }
  }
}

TEST_CASE("what is no number is passed over") {
  CHECK(places_of({{NAN, -INFINITY, NAN, 2, 1}, {NAN, NAN, NAN, NAN, NAN}, {NAN, 0, 0, NAN, -1}}) ==
        std::vector<int32_t>{3, 0, 1});
  CHECK(places_of({{-INFINITY, -INFINITY}, {1, INFINITY}}) == std::vector<int32_t>{0, 1});
}

TEST_CASE("argmax refuses what it does not take") {
  GlobalArray<float> x(8);
  GlobalArray<int32_t> p(2);
  const auto refused = [&](int32_t* places, const float* of, int64_t R, int64_t V, int64_t row) {
    return kernels::argmax(places, of, R, V, row, nullptr).code == device::LaunchStatus::kRefused;
  };
  CHECK_FALSE(refused(p.data(), x.data(), 2, 4, 4));
  CHECK(refused(p.data(), x.data(), 0, 4, 4));
  CHECK(refused(p.data(), x.data(), 2, 0, 4));
  CHECK(refused(p.data(), x.data(), 2, int64_t{1} << 31, int64_t{1} << 31));
  CHECK(refused(p.data(), x.data(), 2, 4, 3));
  CHECK(refused(nullptr, x.data(), 2, 4, 4));
  CHECK(refused(p.data(), nullptr, 2, 4, 4));
}

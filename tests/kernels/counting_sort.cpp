// The sort of tokens, compared with the standard library's.

#include "kernels/counting_sort.cuh"

#include <algorithm>
#include <numeric>

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

void check_sort(size_t n, int limit) {
  INFO("n " << n << " limit " << limit);
  const Rng rng(9, "keys");
  std::vector<int32_t> keys, order(n);
  for (size_t i = 0; i < n; ++i) {
    keys.push_back(static_cast<int32_t>(rng.below(i, static_cast<uint64_t>(limit))));
  }
  keys[n / 2] = limit - 1;
  std::iota(order.begin(), order.end(), 0);
  const auto key_of = [&](int32_t i) { return keys[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key_of(a) < key_of(b); });
  const auto N = static_cast<int64_t>(n);
  const GlobalArray<int32_t> in(keys);
  GlobalArray<int32_t> key(n), origin(n), between_key(n), between_origin(n);
  GlobalArray<int32_t> counts(
      static_cast<size_t>(kernels::kSortDigits * (kernels::sort_tiles(N) + 1)));
  REQUIRE(kernels::sort_keys({key.data(), origin.data()},
                             {between_key.data(), between_origin.data()}, in.data(), N, limit,
                             counts.data(), nullptr)
              .ok());
  CHECK(origin.values() == order);
  std::transform(order.begin(), order.end(), order.begin(), key_of);
  CHECK(key.values() == order);
}

}  // namespace

TEST_CASE("keys are sorted and equal keys keep their order") {
  for (const int limit : {1, 2, 512, 513, 5000, 1 << 18}) {
    check_sort(1, limit);
    check_sort(2049, limit);
  }
  check_sort(kernels::kSortTile * 2, 37);
}

TEST_CASE("sums over tiles carry on where there are more tiles than threads") {
  constexpr int kTiles = 600, kValues = 3;
  GlobalArray<int32_t> counts(kTiles * kValues), totals(kValues);
  for (int i = 0; i < kTiles * kValues; ++i) counts[static_cast<size_t>(i)] = i % 7;
  REQUIRE(device::launch(kernels::scan_tiles<kernels::kSortWarps>, {kValues, 1, 1},
                         {kernels::kSortThreads, 1, 1}, 0, nullptr, counts.data(), totals.data(),
                         kTiles)
              .ok());
  std::vector<int32_t> sums, all;
  for (int v = 0; v < kValues; ++v) {
    int sum = 0;
    for (int t = 0; t < kTiles; ++t) {
      sums.push_back(sum);
      sum += (v * kTiles + t) % 7;
    }
    all.push_back(sum);
  }
  CHECK(counts.values() == sums);
  CHECK(totals.values() == all);
}

// Passes over flat arrays, on the engine.

#include "kernels/flat.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "catch.h"
#include "core/dtype.h"
#include "core/rng.h"
#include "engine/support.h"
#include "kernels/device.cuh"
#include "mechanism_values.h"

using namespace bamtrain;
using namespace bamtrain::test;
using engine::GlobalArray;
using engine::ScopedOptions;

namespace {

constexpr size_t kFlatTile = 4096;  // elements per block
const size_t kSizes[] = {
    0, 1, 3, 4, 255, kFlatTile - 1, kFlatTile, kFlatTile + 1, 3 * kFlatTile + 1234};

std::vector<float> flat_normal(const char* stream, size_t n) {
  const Rng rng(6, stream);
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(rng.normal(i));
  return x;
}

double squared_norm(const GlobalArray<float>& x) {
  GlobalArray<double> result(1), scratch(kernels::kSquaredNormScratch);
  REQUIRE(kernels::squared_norm(result.data(), scratch.data(), x.data(),
                                static_cast<int64_t>(x.size()), nullptr)
              .ok());
  return result[0];
}

void compare_squared_norm(const std::vector<float>& x) {
  long double sum = 0;
  for (float v : x) sum += static_cast<long double>(v) * static_cast<long double>(v);
  // Products of fp32 are exact in fp64. No element passes through more than 600 additions: 16 of a
  // tile times the block's tiles, the warps' and the blocks'.
  CHECK(std::abs(squared_norm(GlobalArray<float>(x)) - static_cast<double>(sum)) <=
        600 * 0x1p-53 * static_cast<double>(sum));
}

}  // namespace

TEST_CASE("add adds element by element, whatever the size") {
  for (const size_t n : kSizes) {
    INFO(n);
    const std::vector<float> a = flat_normal("a", n), b = flat_normal("b", n);
    std::vector<float> sum(n);
    for (size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
    GlobalArray<float> dst(a);
    const GlobalArray<float> src(b);
    REQUIRE(kernels::add(dst.data(), src.data(), static_cast<int64_t>(n), nullptr).ok());
    CHECK(dst.values() == sum);
  }
}

TEST_CASE("add in bf16 rounds the sum in fp32 once, whatever the size") {
  for (const size_t n : kSizes) {
    INFO(n);
    const std::vector<float> a = flat_normal("a", n), b = flat_normal("b", n);
    GlobalArray<device::bf16> dst(n), src(n);
    for (size_t i = 0; i < n; ++i) {
      dst[i] = {bf16(a[i]).bits};
      src[i] = {bf16(b[i]).bits};
    }
    REQUIRE(kernels::add(dst.data(), src.data(), static_cast<int64_t>(n), nullptr).ok());
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) {
      const float sum = static_cast<float>(bf16(a[i])) + static_cast<float>(bf16(b[i]));
      wrong += dst[i].bits != bf16(sum).bits;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("convert rounds like the host, whatever the size") {
  for (const size_t n : kSizes) {
    INFO(n);
    std::vector<float> x = flat_normal("x", n);
    // Halfway to an even and to an odd neighbour, beyond the largest bf16, zero of either sign.
    const float special[] = {0x1.01p0f, 0x1.03p0f, std::numeric_limits<float>::max(), -0.0f,
                             INFINITY};
    for (size_t i = 0; i < n && i < 5; ++i) x[n - 1 - i] = special[i];
    const GlobalArray<float> src(x);
    GlobalArray<device::bf16> narrow(n);
    GlobalArray<float> wide(n);
    REQUIRE(kernels::convert(narrow.data(), src.data(), static_cast<int64_t>(n), nullptr).ok());
    REQUIRE(kernels::convert(wide.data(), src.data(), static_cast<int64_t>(n), nullptr).ok());
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong += narrow[i].bits != bf16(x[i]).bits;
    CHECK(wrong == 0);
    CHECK(wide.values() == x);
  }
}

TEST_CASE("a squared norm is a sum in fp64, whatever the size") {
  for (const size_t n : kSizes) {
    INFO(n);
    compare_squared_norm(flat_normal("x", n));
  }
  // fp32 would lose every element after the first.
  std::vector<float> small(20000, 1e-5f);
  small[0] = 1;
  compare_squared_norm(small);
}

TEST_CASE("a squared norm of more tiles than blocks covers them all") {
  std::vector<float> x(kernels::kSquaredNormScratch * kFlatTile + 2 * kFlatTile + 5);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 31);
  compare_squared_norm(x);
}

TEST_CASE("a squared norm has the same bits in every order of threads, warps and blocks") {
  const GlobalArray<float> x(flat_normal("x", 5 * kFlatTile + 77));
  const double first = squared_norm(x);
  for (const engine::Options& o : engine::schedules()) {
    const ScopedOptions with(o);
    CHECK(squared_norm(x) == first);
  }
}

TEST_CASE("flat passes refuse negative sizes and addresses that vectors do not take") {
  GlobalArray<float> f(64);
  GlobalArray<double> d(kernels::kSquaredNormScratch + 1);
  GlobalArray<device::bf16> h(64);
  float* const x = f.data();
  CHECK(is_refused(kernels::add(x, x + 32, -1, nullptr)));
  CHECK(is_refused(kernels::add(x + 1, x + 32, 8, nullptr)));
  CHECK(is_refused(kernels::add(x, x + 33, 8, nullptr)));
  CHECK(is_refused(kernels::convert(h.data(), x, -1, nullptr)));
  CHECK(is_refused(kernels::convert(h.data() + 4, x, 8, nullptr)));
  CHECK(is_refused(kernels::convert(x, x + 33, 8, nullptr)));
  CHECK(is_refused(kernels::squared_norm(d.data(), d.data() + 1, x, -1, nullptr)));
  CHECK(is_refused(kernels::squared_norm(d.data(), d.data() + 1, x + 2, 8, nullptr)));
}

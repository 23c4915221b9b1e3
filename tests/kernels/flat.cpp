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

std::vector<double> squares(const GlobalArray<float>& x) {
  GlobalArray<double> found((x.size() + kFlatTile - 1) / kFlatTile);
  REQUIRE(kernels::squares(found.data(), x.data(), static_cast<int64_t>(x.size()), nullptr).ok());
  return found.values();
}

template <class X>
double sum(const GlobalArray<X>& x, double before) {
  GlobalArray<double> total(std::vector<double>{before});
  REQUIRE(kernels::sum(total.data(), x.data(), static_cast<int64_t>(x.size()), nullptr).ok());
  return total[0];
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

TEST_CASE("squares of a block are summed in fp64, whatever the size") {
  for (const size_t n : kSizes) {
    INFO(n);
    std::vector<float> x = flat_normal("x", n);
    if (n > 0) x[0] = 1e5f;  // fp32 would lose all others of its block
    const std::vector<double> found = squares(GlobalArray<float>(x));
    REQUIRE(found.size() == (n + kFlatTile - 1) / kFlatTile);
    for (size_t block = 0; block < found.size(); ++block) {
      long double expected = 0;
      for (size_t i = block * kFlatTile; i < std::min(n, (block + 1) * kFlatTile); ++i) {
        expected += static_cast<long double>(x[i]) * static_cast<long double>(x[i]);
      }
      // Products of fp32 are exact in fp64. No element passes through more than 32 additions: 16 of
      // its thread's, and those of the warps and the block.
      CHECK(std::abs(found[block] - static_cast<double>(expected)) <=
            32 * 0x1p-53 * static_cast<double>(expected));
    }
  }
}

/// Processes own parts that begin with a block.
TEST_CASE("squares of blocks are the same in a part of the array, and in every order of threads") {
  const std::vector<float> x = flat_normal("x", 5 * kFlatTile + 77);
  const std::vector<double> all = squares(GlobalArray<float>(x));
  const std::vector<double> last =
      squares(GlobalArray<float>(std::vector<float>(x.begin() + 2 * kFlatTile, x.end())));
  CHECK(last == std::vector<double>(all.begin() + 2, all.end()));
  for (const engine::Options& o : engine::schedules()) {
    const ScopedOptions with(o);
    CHECK(squares(GlobalArray<float>(x)) == all);
  }
}

TEST_CASE("sums are formed in fp64 onto what is there, in the same order always") {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{255}, size_t{511}, size_t{5000}}) {
    std::vector<float> x = flat_normal("x", n);
    double expected = 1e6;
    for (float& v : x) expected += v += 5;
    const GlobalArray<float> floats(x);
    const GlobalArray<double> doubles(std::vector<double>(x.begin(), x.end()));
    const double first = sum(floats, 1e6);
    CHECK(std::abs(first - expected) <= 5000 * 0x1p-53 * expected);
    for (const engine::Options& o : engine::schedules()) {
      const ScopedOptions with(o);
      CHECK(sum(floats, 1e6) == first);
      CHECK(sum(doubles, 1e6) == first);
    }
  }
}

TEST_CASE("flat passes refuse negative sizes and addresses that vectors do not take") {
  GlobalArray<float> f(64);
  GlobalArray<double> d(1);
  GlobalArray<device::bf16> h(64);
  float* const x = f.data();
  CHECK(is_refused(kernels::add(x, x + 32, -1, nullptr)));
  CHECK(is_refused(kernels::add(x + 1, x + 32, 8, nullptr)));
  CHECK(is_refused(kernels::add(x, x + 33, 8, nullptr)));
  CHECK(is_refused(kernels::convert(h.data(), x, -1, nullptr)));
  CHECK(is_refused(kernels::convert(h.data() + 4, x, 8, nullptr)));
  CHECK(is_refused(kernels::convert(x, x + 33, 8, nullptr)));
  CHECK(is_refused(kernels::squares(d.data(), x, -1, nullptr)));
  CHECK(is_refused(kernels::squares(d.data(), x + 2, 8, nullptr)));
  CHECK(is_refused(kernels::sum(d.data(), x, -1, nullptr)));
}

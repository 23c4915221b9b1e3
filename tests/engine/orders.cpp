// Correct kernels have correct results, bitwise identical in every order, and the checker reports
// nothing.

#include <cmath>

#include "catch.h"
#include "core/dtype.h"
#include "engine/support.h"
#include "engine/test_kernels.cuh"

using namespace bamtrain;
using namespace bamtrain::engine;

namespace {

static_assert(sizeof(device::bf16) == sizeof(bamtrain::bf16));
static_assert(alignof(device::bf16) == alignof(bamtrain::bf16));

/// bf16 values in (-4, 4) with random low bits.
std::vector<device::bf16> random_matrix(size_t count, uint64_t seed) {
  wrappers::Integers g(seed);
  std::vector<device::bf16> x(count);
  for (auto& e : x) e.bits = static_cast<uint16_t>(g.real(-4, 2) >> 16);
  return x;
}

struct Product {
  int M, N, K;
  std::vector<device::bf16> a = random_matrix(static_cast<size_t>(M) * static_cast<size_t>(K), 1);
  std::vector<device::bf16> b = random_matrix(static_cast<size_t>(N) * static_cast<size_t>(K), 2);

  std::vector<uint32_t> bits() const {
    const GlobalArray<device::bf16> on_a(a), on_b(b);
    GlobalArray<float> c(static_cast<size_t>(M) * static_cast<size_t>(N));
    constexpr int t = test_kernels::kTile;
    const device::Dim3 grid = {static_cast<uint32_t>((N + t - 1) / t),
                               static_cast<uint32_t>((M + t - 1) / t), 1};
    REQUIRE(device::launch(test_kernels::matrix_product, grid, {128, 1, 1},
                           test_kernels::kProductSharedBytes, nullptr, on_a.data(), on_b.data(),
                           c.data(), M, N, K)
                .ok());
    std::vector<uint32_t> all;
    for (size_t i = 0; i < c.size(); ++i) all.push_back(bits_of(c[i]));
    return all;
  }
};

}  // namespace

TEST_CASE("a tiled product is within fp32 rounding of fp64, the same bits in every order") {
  for (const auto& [M, N, K] : {std::tuple(64, 64, 32), std::tuple(100, 70, 72)}) {
    const Product product{M, N, K};
    INFO(M << " x " << N << " x " << K);
    const std::vector<uint32_t> first = product.bits();
    for (int i = 0; i < M; ++i) {
      for (int j = 0; j < N; ++j) {
        double sum = 0.0, magnitude = 0.0;
        for (int k = 0; k < K; ++k) {
          const double term = double{device::to_float(product.a[static_cast<size_t>(i * K + k)])} *
                              double{device::to_float(product.b[static_cast<size_t>(j * K + k)])};
          sum += term;
          magnitude += std::abs(term);
        }
        const double error = float_of(first[static_cast<size_t>(i * N + j)]) - sum;
        if (!(std::abs(error) <= K * 0x1p-24 * magnitude)) {
          FAIL("element (" << i << ", " << j << ") is off by " << error);
        }
      }
    }
    for (const Options& o : schedules()) {
      const ScopedOptions with(o);
      CHECK(product.bits() == first);
    }
  }
}

TEST_CASE("a sum over blocks is exact for integers, the same bits in every order for any") {
  wrappers::Integers g(7);
  std::vector<float> integers(1000), reals(1000);
  double expected[4] = {};
  for (size_t i = 0; i < integers.size(); ++i) {
    integers[i] = float_of(g.small_integer());
    reals[i] = float_of(g.real(-8, 8));
    expected[i / 300] += double{integers[i]};
  }
  const auto sums = [](const std::vector<float>& values) {
    const GlobalArray<float> x(values);
    GlobalArray<float> out(4);
    REQUIRE(device::launch(test_kernels::block_sum, {4, 1, 1}, {96, 1, 1}, 0, nullptr, x.data(),
                           out.data(), 1000, 300)
                .ok());
    return out.values();
  };
  const std::vector<float> of_integers = sums(integers), of_reals = sums(reals);
  for (size_t b = 0; b < 4; ++b) CHECK(double{of_integers[b]} == expected[b]);
  for (const Options& o : schedules()) {
    const ScopedOptions with(o);
    CHECK(sums(reals) == of_reals);
  }
}

TEST_CASE("counters tell conflicts of ldmatrix from their absence") {
  counters() = {};
  (void)Product{64, 64, 32}.bits();
  CHECK(counters().blocks == 1);
  CHECK(counters().ldmatrix == 4 * 2 * 5);  // warps, steps of 16, one of a and 4 of b
  CHECK(counters().mma == 4 * 2 * 8);       // warps, steps of 16, 8 columns each
  CHECK(counters().ldmatrix_conflicts == 0);

  struct Column {  // of a row-major array 128 bytes wide: all rows in the same banks
    static void kernel(uint32_t* out) {
      BAMTRAIN_SHARED(uint32_t, x, 8 * 32);
      const int lane = static_cast<int>(device::thread_index().x);
      for (int i = lane; i < 8 * 32; i += 32) x[i] = 0;
      device::barrier();
      uint32_t r[1];
      device::ldmatrix(r, device::shared_address(x + lane % 8 * 32));
      out[lane] = r[0];
    }
  };
  counters() = {};
  GlobalArray<uint32_t> out(32);
  REQUIRE(device::launch(Column::kernel, {}, {32, 1, 1}, 0, nullptr, out.data()).ok());
  CHECK(counters().ldmatrix_conflicts == 7);
}

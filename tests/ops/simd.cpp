#include "ops/cpu/simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "catch.h"

namespace bamtrain {
namespace {

float exp_of(float x) {
  float out[simd::kWidth];
  simd::store(out, simd::exp(simd::splat(x)));
  return out[0];
}

/// The largest relative error over every `stride`-th float between two of one sign.
double largest_error(float from, float to, uint32_t stride) {
  const uint32_t end = std::bit_cast<uint32_t>(to);
  double worst = 0;
  for (uint32_t bits = std::bit_cast<uint32_t>(from); bits <= end;) {
    float x[simd::kWidth], y[simd::kWidth];
    for (int i = 0; i < simd::kWidth; ++i, bits += stride) {
      x[i] = std::bit_cast<float>(bits <= end ? bits : end);
    }
    simd::store(y, simd::exp(simd::load(x)));
    for (int i = 0; i < simd::kWidth; ++i) {
      const double truth = std::exp(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) - truth) / truth);
    }
  }
  return worst;
}

TEST_CASE("the vector exponential is within 2e-7 of the exact one over its whole range") {
  CHECK(largest_error(0.0f, 88.0f, 499) < 2e-7);
  CHECK(largest_error(-0.0f, -87.0f, 499) < 2e-7);
}

TEST_CASE("the vector exponential at the ends of its range") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(exp_of(0) == 1);
  for (float x : {-87.5f, -1e4f, -std::numeric_limits<float>::max(), -kInfinity}) {
    CHECK(exp_of(x) >= std::numeric_limits<float>::min());
    CHECK(exp_of(x) < 1.7e-38f);
  }
  for (float x : {88.5f, 1e4f, std::numeric_limits<float>::max(), kInfinity}) {
    CHECK(exp_of(x) == exp_of(88));
  }
  CHECK(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(exp_of(-std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("partial loads and stores touch the elements they name") {
  for (int64_t n = 0; n < simd::kWidth; ++n) {
    float in[simd::kWidth], out[simd::kWidth];
    for (int i = 0; i < simd::kWidth; ++i) {
      in[i] = static_cast<float>(i + 1);
      out[i] = -1;
    }
    float all[simd::kWidth];
    simd::store(all, simd::load_partial(in, n));
    simd::store_partial(out, simd::load(in), n);
    for (int i = 0; i < simd::kWidth; ++i) {
      CHECK(all[i] == (i < n ? in[i] : 0));
      CHECK(out[i] == (i < n ? in[i] : -1));
    }
  }
}

TEST_CASE("sums and maxima over lanes") {
  float x[simd::kWidth];
  for (int i = 0; i < simd::kWidth; ++i) x[i] = static_cast<float>((i * 7) % simd::kWidth - 20);
  CHECK(simd::sum(simd::load(x)) == 15 * 16 / 2 - 20 * 16);
  CHECK(simd::maximum(simd::load(x)) == -5);
}

}  // namespace
}  // namespace bamtrain

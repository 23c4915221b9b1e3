#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "catch.h"
#include "simd_set.h"

namespace bamtrain {

#if defined(BAMTRAIN_ONLY_ISA)
namespace BAMTRAIN_ONLY_ISA {
extern const testing::SimdSet kSimdSet;
}
#else
namespace v3 {
extern const testing::SimdSet kSimdSet;
}
namespace v4 {
extern const testing::SimdSet kSimdSet;
}
#endif

namespace testing {

std::vector<SimdSet> simd_sets() {
#if defined(BAMTRAIN_ONLY_ISA)
  return {BAMTRAIN_ONLY_ISA::kSimdSet};
#else
  std::vector<SimdSet> sets;
  if (__builtin_cpu_supports("x86-64-v3")) sets.push_back(v3::kSimdSet);
  if (__builtin_cpu_supports("x86-64-v4")) sets.push_back(v4::kSimdSet);
  if (sets.size() < 2) WARN("this processor runs " << sets.size() << " of 2 instruction sets");
  return sets;
#endif
}

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float exp_of(const SimdSet& set, float x) {
  const std::vector<float> in(static_cast<size_t>(set.width), x);
  std::vector<float> out(in.size());
  set.exp(out.data(), in.data());
  return out[0];
}

/// The largest relative error over every `stride`-th float between two floats of the same sign.
double largest_error(const SimdSet& set, float from, float to, uint32_t stride) {
  const uint32_t end = std::bit_cast<uint32_t>(to);
  std::vector<float> x(static_cast<size_t>(set.width)), y(x.size());
  double worst = 0;
  for (uint32_t bits = std::bit_cast<uint32_t>(from); bits <= end;) {
    for (float& argument : x) {
      argument = std::bit_cast<float>(std::min(bits, end));
      bits += stride;
    }
    set.exp(y.data(), x.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double truth = std::exp(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) - truth) / truth);
    }
  }
  return worst;
}

TEST_CASE("the vector exponential is within 2e-7 of the exact one over its whole range") {
  for (const SimdSet& set : simd_sets()) {
    INFO(set.name);
    CHECK(largest_error(set, 0.0f, 88.0f, 499) < 2e-7);
    CHECK(largest_error(set, -0.0f, -64.0f, 499) < 2e-7);
  }
}

TEST_CASE("the vector logarithm is within 1e-7 of 1 plus the exact one") {
  for (const SimdSet& set : simd_sets()) {
    INFO(set.name);
    std::vector<float> x(static_cast<size_t>(set.width)), y(x.size());
    const uint32_t end = std::bit_cast<uint32_t>(0x1.fp126f);
    double worst = 0;
    for (uint32_t bits = std::bit_cast<uint32_t>(1.0f); bits <= end;) {
      for (float& argument : x) {
        argument = std::bit_cast<float>(std::min(bits, end));
        bits += 499;
      }
      set.log(y.data(), x.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double truth = std::log(static_cast<double>(x[i]));
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - truth) / (1 + truth));
      }
    }
    CHECK(worst < 1e-7);
    x.assign(x.size(), 1.0f);
    set.log(y.data(), x.data());
    CHECK(y[0] == 0);
    x.assign(x.size(), std::nanf(""));
    set.log(y.data(), x.data());
    CHECK(std::isnan(y[0]));
  }
}

TEST_CASE("the vector error function is within 4e-7 of the exact one, odd, and 1 from 3.93 on") {
  for (const SimdSet& set : simd_sets()) {
    INFO(set.name);
    std::vector<float> x(static_cast<size_t>(set.width)), y(x.size()), mirrored(x.size());
    const uint32_t end = std::bit_cast<uint32_t>(kInfinity);
    double worst = 0;
    bool odd = true;
    for (uint32_t bits = 0; bits <= end;) {
      for (float& argument : x) {
        argument = std::bit_cast<float>(std::min(bits, end));
        bits += 499;
      }
      set.erf(y.data(), x.data());
      for (size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst,
                         std::abs(static_cast<double>(y[i]) - std::erf(static_cast<double>(x[i]))));
        x[i] = -x[i];
      }
      set.erf(mirrored.data(), x.data());
      for (size_t i = 0; i < x.size(); ++i) odd &= mirrored[i] == -y[i];
    }
    CHECK(worst < 4e-7);
    CHECK(odd);
    const auto erf_of = [&](float argument) {
      x.assign(x.size(), argument);
      set.erf(y.data(), x.data());
      return y[0];
    };
    CHECK(erf_of(0) == 0);
    CHECK(erf_of(3.93f) == 1);
    CHECK(erf_of(kInfinity) == 1);
    CHECK(std::isnan(erf_of(std::nanf(""))));
  }
}

TEST_CASE("the vector exponential at the ends of its range") {
  for (const SimdSet& set : simd_sets()) {
    INFO(set.name);
    CHECK(exp_of(set, 0) == 1);
    for (float x :
         {-64.00001f, -70.0f, -87.5f, -1e4f, -std::numeric_limits<float>::max(), -kInfinity}) {
      CHECK(exp_of(set, x) == 0);
    }
    for (float x : {88.5f, 1e4f, std::numeric_limits<float>::max(), kInfinity}) {
      CHECK(exp_of(set, x) == exp_of(set, 88));
    }
  }
}

TEST_CASE("the vector exponential of NaN is NaN, whatever the payload") {
  for (const SimdSet& set : simd_sets()) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      for (uint32_t payload : {0x400000u, 0x400001u, 0x4000FFu, 0x400100u, 0x7FFFFFu, 0x400080u,
                               0x40007Fu, 0x4001FEu, 0x000001u, 0x2AAAAAu}) {
        const uint32_t bits = sign | 0x7F800000u | payload;
        INFO(set.name << ", bits " << std::hex << bits);
        CHECK(std::isnan(exp_of(set, std::bit_cast<float>(bits))));
      }
    }
  }
}

TEST_CASE("partial loads and stores touch the elements they name") {
  for (const SimdSet& set : simd_sets()) {
    const auto width = static_cast<size_t>(set.width);
    for (size_t n = 0; n < width; ++n) {
      INFO(set.name << ", " << n << " elements");
      std::vector<float> in(width), loaded(width), stored(width, -1.0f);
      for (size_t i = 0; i < width; ++i) in[i] = static_cast<float>(i + 1);
      set.load_partial(loaded.data(), in.data(), static_cast<int64_t>(n));
      set.store_partial(stored.data(), in.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < width; ++i) {
        CHECK(loaded[i] == (i < n ? in[i] : 0));
        CHECK(stored[i] == (i < n ? in[i] : -1));
      }
    }
  }
}

TEST_CASE("sums and maxima over lanes") {
  for (const SimdSet& set : simd_sets()) {
    INFO(set.name);
    const int n = set.width;
    std::vector<float> x(static_cast<size_t>(n));
    // 7 is coprime to every width: a permutation of 0, ..., n - 1, minus 20.
    for (int i = 0; i < n; ++i) x[static_cast<size_t>(i)] = static_cast<float>((i * 7) % n - 20);
    CHECK(set.sum(x.data()) == static_cast<float>(n * (n - 1) / 2 - 20 * n));
    CHECK(set.maximum(x.data()) == static_cast<float>(n - 1 - 20));
  }
}

TEST_CASE("vectors change rows for columns") {
  for (const SimdSet& set : simd_sets()) {
    const int n = set.width;
    std::vector<float> x(static_cast<size_t>(n * n));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    set.transpose(x.data());
    int wrong = 0;
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c < n; ++c) {
        wrong += x[static_cast<size_t>(r * n + c)] != static_cast<float>(c * n + r);
      }
    }
    INFO(set.name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("one lane above another is seen in any place, and NaN is above nothing") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const SimdSet& set : simd_sets()) {
    INFO(set.name);
    const auto n = static_cast<size_t>(set.width);
    for (size_t i = 0; i < n; ++i) {
      std::vector<float> a(n, -kInfinity), b(n, 1);
      a[i] = 1;
      CHECK_FALSE(set.any_above(a.data(), b.data()));
      a[i] = 1.5f;
      CHECK(set.any_above(a.data(), b.data()));
      a[i] = nan;
      CHECK_FALSE(set.any_above(a.data(), b.data()));
      a[i] = 2;
      b[i] = nan;
      CHECK_FALSE(set.any_above(a.data(), b.data()));
    }
  }
}

TEST_CASE("two numbers of bf16 make one to 16 bits") {
  for (const SimdSet& set : simd_sets()) {
    INFO(set.name);
    const auto n = static_cast<size_t>(2 * set.width);
    std::vector<float> x(n);
    std::vector<bf16> first(n), second(n);
    int64_t wrong = 0;
    // From 2^-100 to 2^100, so that the remainder of the first part is not denormal.
    for (uint32_t bits = 0x0D800000u; bits < 0x71800000u; bits += 12345) {
      for (size_t i = 0; i < n; ++i) {
        x[i] = std::bit_cast<float>(bits + static_cast<uint32_t>(i) * 77);
      }
      set.store_in_two(first.data(), second.data(), x.data());
      for (size_t i = 0; i < n; ++i) {
        const auto truth = static_cast<double>(x[i]);
        const double sum = static_cast<double>(static_cast<float>(first[i])) +
                           static_cast<double>(static_cast<float>(second[i]));
        wrong += !(std::abs(sum - truth) <= 0x1p-16 * truth);
      }
    }
    CHECK(wrong == 0);
    for (size_t i = 0; i < n; ++i) x[i] = i == 3 ? std::numeric_limits<float>::quiet_NaN() : 0;
    set.store_in_two(first.data(), second.data(), x.data());
    for (size_t i = 0; i < n; ++i) {
      const float sum = static_cast<float>(first[i]) + static_cast<float>(second[i]);
      CHECK((i == 3 ? std::isnan(sum) : sum == 0));
    }
    // bf16 numbers are exact.
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i);
    set.store_in_two(first.data(), second.data(), x.data());
    for (size_t i = 0; i < n; ++i) {
      CHECK(static_cast<float>(first[i]) == x[i]);
      CHECK(static_cast<float>(second[i]) == 0);
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace bamtrain

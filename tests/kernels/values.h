#pragma once
// Helpers for tests of row-wise and element-wise kernels: values that A can represent, arrays of
// them in global memory, and comparisons with fp64.

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "engine/engine.h"
#include "kernels/launch.h"

namespace bamtrain::test {

using engine::GlobalArray;
using DeviceBf16 = device::bf16;
using Doubles = std::vector<double>;

/// Half the distance from 1 to the next number in A.
template <class A>
constexpr double kRoundoff = std::is_same_v<A, float> ? 0x1p-24 : 0x1p-8;
constexpr double kBf16 = kRoundoff<DeviceBf16>;

inline double value_of(float x) { return static_cast<double>(x); }
inline double value_of(DeviceBf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return static_cast<double>(f);
}

/// x rounded to A, to nearest even.
template <class A>
A rounded(double x) {
  const auto f = static_cast<float>(x);
  if constexpr (std::is_same_v<A, float>) {
    return f;
  } else {
    uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
  }
}
template <class A>
double as(double x) {
  return value_of(rounded<A>(x));
}

/// n values in A with this standard deviation; each stream has different values.
template <class A>
Doubles normal(const std::string& stream, size_t n, double deviation = 1, double mean = 0) {
  const Rng rng(11, stream);
  Doubles x(n);
  for (size_t i = 0; i < n; ++i) x[i] = as<A>(mean + deviation * rng.normal(i));
  return x;
}

template <class A>
std::vector<A> elements(const Doubles& x) {
  std::vector<A> out;
  out.reserve(x.size());
  for (double v : x) out.push_back(rounded<A>(v));
  return out;
}
template <class A>
Doubles doubles(const GlobalArray<A>& x) {
  Doubles out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(value_of(x[i]));
  return out;
}

/// Checks |found[i] - truth[i]| <= allowed(i) for all i, and reports the worst.
template <class Allowed>
void check_close(const Doubles& found, const Doubles& truth, Allowed&& allowed) {
  REQUIRE(found.size() == truth.size());
  size_t worst = 0;
  double excess = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double e = std::abs(found[i] - truth[i]) / allowed(i);
    if (!(e <= excess)) {  // also NaN
      excess = e;
      worst = i;
      if (std::isnan(e)) break;
    }
  }
  INFO("worst at " << worst << ": found " << found[worst] << ", truth " << truth[worst]
                   << ", allowed " << allowed(worst));
  CHECK(excess <= 1);
}

/// Runs f, which returns doubles, under every schedule of the engine. Checks that all results
/// agree.
template <class F>
void check_same_under_all_schedules(F&& f) {
  const engine::Options before = engine::options();
  std::optional<Doubles> first;
  for (const engine::Options& schedule : engine::schedules()) {
    engine::options() = schedule;
    const Doubles r = f();
    if (!first) first = r;
    CHECK(std::memcmp(r.data(), first->data(), r.size() * sizeof(double)) == 0);
  }
  engine::options() = before;
}

inline void check_refused(const device::LaunchStatus& status) {
  CHECK(status.code == device::LaunchStatus::kRefused);
}

}  // namespace bamtrain::test

#pragma once
// Helpers shared by the tests of prior tables and of scale rows.

#include <string>
#include <vector>

#include "core/rng.h"
#include "kernels/launch.h"

namespace bamtrain::test {

constexpr double kFp32 = 0x1p-24;  // unit roundoff
constexpr float kBefore = 0.125f;  // initial value of gradients

/// Normal numbers of standard deviation 0.5.
inline std::vector<float> drawn(const std::string& stream, size_t n) {
  const Rng rng(9, stream);
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(0.5 * rng.normal(i));
  return x;
}

/// Doubles, and the pointers to them that the registries' functions take.
struct Pointed {
  std::vector<std::vector<double>> values;
  std::vector<const double*> read;
  std::vector<double*> written;

  explicit Pointed(const std::vector<std::vector<float>>& x) {
    for (const auto& v : x) values.emplace_back(v.begin(), v.end());
    for (auto& v : values) {
      read.push_back(v.data());
      written.push_back(v.data());
    }
  }
};

inline bool is_refused(const device::LaunchStatus& status) {
  return status.code == device::LaunchStatus::kRefused;
}

}  // namespace bamtrain::test

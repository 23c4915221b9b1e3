#pragma once
// Helpers for the engine's tests.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/wrapper_cases.h"

namespace bamtrain::engine {

/// Sets the engine's options to `o` during its lifetime.
class ScopedOptions {
 public:
  explicit ScopedOptions(const Options& o) : before_(options()) { options() = o; }
  ~ScopedOptions() { options() = before_; }
  ScopedOptions(const ScopedOptions&) = delete;
  ScopedOptions& operator=(const ScopedOptions&) = delete;

 private:
  Options before_;
};

inline std::filesystem::path source_folder() {
  const char* root = std::getenv("BAMTRAIN_SOURCE");
  return root == nullptr ? "." : root;
}

/// The engine's result for a case of wrapper_cases.h.
inline std::vector<uint32_t> run(const wrappers::Case& c) {
  const GlobalArray<uint32_t> in(c.in);
  GlobalArray<uint32_t> out(c.out_words);
  const auto status =
      device::launch(c.kernel, {}, {32, 1, 1}, c.shared_bytes, nullptr, in.data(), out.data());
  require(status.ok(), status.message);
  return out.values();
}

/// The largest error of a word that `tolerance` allows. `expected` is the correct value. For mma,
/// `magnitude` is the sum of the absolute values of the terms. REQUIRES: finite values; `tolerance`
/// is not exact.
inline double allowed(wrappers::Tolerance tolerance, double argument, double expected,
                      double magnitude) {
  const double relative = (0x1p-22 + 0x1p-24) * std::abs(expected);
  switch (tolerance) {
    case wrappers::Tolerance::mma:
      return 0x1p-18 * magnitude;
    case wrappers::Tolerance::exp2:
      return relative;
    case wrappers::Tolerance::log2:
      return argument > 0.5 && argument < 2.0 ? 0x1p-22 + 0x1p-24 : relative;
    case wrappers::Tolerance::exact:
      break;
  }
  return 0.0;
}

}  // namespace bamtrain::engine

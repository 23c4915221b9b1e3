#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "core/error.h"

namespace bamtrain::bench {

/// Accepts sizes and counts of one or more.
inline CLI::Range positive() { return {int64_t{1}, int64_t{1} << 40}; }

/// Says what ended the program, and returns the exit code.
inline int report(const char* program, const std::exception& failure) {
  std::fprintf(stderr, "%s: %s\n", program, failure.what());
  const auto* error = dynamic_cast<const Error*>(&failure);
  return static_cast<int>(error ? error->code() : ExitCode::internal);
}

}  // namespace bamtrain::bench

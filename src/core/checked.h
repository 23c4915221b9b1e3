#pragma once
// Overflow-safe integer arithmetic for sizes that come from files and configs.

#include <cstdint>
#include <limits>
#include <string>

#include "core/error.h"

namespace bamtrain {

/// a * b, or an Error (ExitCode::data) naming `where`. REQUIRES: a, b >= 0.
inline int64_t checked_mul(int64_t a, int64_t b, const std::string& where) {
  int64_t r = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r)) {
    throw Error(ExitCode::data, where, "a size below 2^63",
                std::to_string(a) + " * " + std::to_string(b), "check the key, or the file");
  }
  return r;
}

/// a + b, or an Error (ExitCode::data) naming `where`. REQUIRES: a, b >= 0.
inline int64_t checked_add(int64_t a, int64_t b, const std::string& where) {
  int64_t r = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &r)) {
    throw Error(ExitCode::data, where, "a size below 2^63",
                std::to_string(a) + " + " + std::to_string(b), "check the key, or the file");
  }
  return r;
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace bamtrain

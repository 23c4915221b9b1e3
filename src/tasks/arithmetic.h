#pragma once
// Expressions modulo 5 with brackets, for the benchmark's modular arithmetic and equations.

#include <cstdint>
#include <string>

#include "tasks/draws.h"
#include "tasks/example.h"

namespace bamtrain::arithmetic {

inline constexpr int32_t kModulus = 5;

/// Ids of signs; digits have their value as id.
struct Signs {
  int32_t plus, minus, times, open, close;  // times: -1 if not used
};

/// `a` modulo 5, in [0, 5) for any sign of `a`.
inline int32_t reduced(int32_t a) { return (a % kModulus + kModulus) % kModulus; }

/// Appends a random expression of `length` tokens to `out` and returns its value. It is a, -a, (a)
/// or (-a) for lengths 1 to 4, else (left op right). The left part has uniform length; the operator
/// is drawn from the available ones. REQUIRES: length >= 1.
int32_t draw_expression(int64_t length, const Signs& signs, Draws* draws, Symbols* out);

/// The character of `text` at index `id`.
inline std::string character(const char* text, int32_t id) { return std::string(1, text[id]); }

}  // namespace bamtrain::arithmetic

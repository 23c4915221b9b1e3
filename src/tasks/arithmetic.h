#pragma once
// Expressions modulo 5 in brackets, of the benchmark's modular arithmetic and equations.

#include <cstdint>
#include <string>

#include "tasks/draws.h"
#include "tasks/example.h"

namespace bamtrain::arithmetic {

inline constexpr int32_t kModulus = 5;

/// Ids of signs; digits are themselves.
struct Signs {
  int32_t plus, minus, times, open, close;  // times: -1 where there is none
};

/// a in [0, 5), whatever the sign of `a`.
inline int32_t reduced(int32_t a) { return (a % kModulus + kModulus) % kModulus; }

/// Appends a random expression of `length` tokens to `out` and returns its value: a, -a, (a), (-a)
/// for lengths 1 to 4, else (left op right) with a left part of uniform length and an operator
/// drawn from those that there are. REQUIRES: length >= 1.
int32_t draw_expression(int64_t length, const Signs& signs, Draws* draws, Symbols* out);

/// The character for an id of `text`, whose ids number its characters.
inline std::string character(const char* text, int32_t id) { return std::string(1, text[id]); }

}  // namespace bamtrain::arithmetic

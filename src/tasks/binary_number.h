#pragma once
// Natural numbers of any size as binary digits, lowest first.

#include "tasks/draws.h"
#include "tasks/example.h"

namespace bamtrain::binary {

/// Digits 0 and 1, lowest first; may have leading zeros.
using Number = Symbols;

/// Uniform from 1 to 2^digits - 1. REQUIRES: digits >= 1.
Number draw_positive(int64_t digits, Draws* draws);

Number sum(const Number& a, const Number& b);
Number product(const Number& a, const Number& b);
/// The largest number whose square is at most `a`, with half as many digits (rounded up).
Number square_root(const Number& a);

/// Removes leading zeros; keeps at least one digit.
Number trimmed(Number a);

}  // namespace bamtrain::binary

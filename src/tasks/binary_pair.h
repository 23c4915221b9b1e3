#pragma once
// Two binary numbers and an operator, for the benchmark's addition and multiplication.

#include "tasks/binary_number.h"

namespace bamtrain::binary {

/// `length` tokens: n, 2, m. Both numbers have their lowest digit first; n has a uniform number of
/// digits. Below three tokens there is only n, and m is 0.
struct Pair {
  Number n, m;
  Symbols source;
};

inline Pair draw_pair(int64_t length, Draws* draws) {
  constexpr int32_t kOperator = 2;
  Pair p;
  if (length <= 2) {  // uniform from 0 to 2^length - 2
    const auto value = static_cast<int32_t>(draws->below((1 << length) - 1));
    for (int64_t digit = 0; digit < length; ++digit) p.n.push_back(value >> digit & 1);
    p.m = {0};
    p.source = p.n;
    return p;
  }
  const int64_t digits = draws->between(1, length - 2);
  p.n = draw_positive(digits, draws);
  p.m = draw_positive(length - 1 - digits, draws);
  p.source = p.n;
  p.source.push_back(kOperator);
  p.source.insert(p.source.end(), p.m.begin(), p.m.end());
  return p;
}

}  // namespace bamtrain::binary

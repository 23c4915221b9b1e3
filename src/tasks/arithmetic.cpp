#include "tasks/arithmetic.h"

namespace bamtrain::arithmetic {

namespace {

int32_t apply(int32_t op, const Signs& signs, int32_t left, int32_t right) {
  return reduced(op == signs.plus ? left + right : op == signs.minus ? left - right : left * right);
}

}  // namespace

int32_t draw_expression(int64_t length, const Signs& signs, Draws* draws, Symbols* out) {
  if (length <= 4) {
    const bool brackets = length >= 3, negative = length % 2 == 0;
    if (brackets) out->push_back(signs.open);
    if (negative) out->push_back(signs.minus);
    const int32_t digit = draws->symbol(0, kModulus - 1);
    out->push_back(digit);
    if (brackets) out->push_back(signs.close);
    return reduced(negative ? -digit : digit);
  }
  const int64_t left_length = draws->between(1, length - 4);
  out->push_back(signs.open);
  const int32_t left = draw_expression(left_length, signs, draws, out);
  const int32_t ops[] = {signs.plus, signs.minus, signs.times};
  const int32_t op = ops[draws->below(signs.times < 0 ? 2 : 3)];
  out->push_back(op);
  const int32_t right = draw_expression(length - 3 - left_length, signs, draws, out);
  out->push_back(signs.close);
  return apply(op, signs, left, right);
}

}  // namespace bamtrain::arithmetic

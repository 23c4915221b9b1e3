// Sums and products modulo 5 without brackets.

#include "tasks/answered.h"
#include "tasks/arithmetic.h"
#include "tasks/list.h"

namespace bamtrain {

namespace {

constexpr int32_t kPlus = 5, kMinus = 6, kTimes = 7;

/// Digits at even indices, operators between; products bind tighter.
int32_t value_of(const Symbols& source) {
  int32_t sum = 0, term = source[0];
  for (size_t i = 1; i + 1 < source.size(); i += 2) {
    const int32_t digit = source[i + 1];
    if (source[i] == kTimes) {
      term = arithmetic::reduced(term * digit);
    } else {
      sum += term;
      term = source[i] == kPlus ? digit : -digit;
    }
  }
  return arithmetic::reduced(sum + term);
}

}  // namespace

TaskInfo modular_arithmetic_simple_task() {
  TaskInfo t = answered_task(9, arithmetic::kModulus);  // input 8 is not used
  t.name = "modular_arithmetic_simple";
  t.description = "the value modulo 5 of an expression of digits, +, - and *";
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.symbol = [](int32_t id) { return arithmetic::character("01234+-* _", id); };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    Symbols source;
    for (int64_t i = 0; i < length - (length % 2 == 0 ? 1 : 0); ++i) {
      source.push_back(i % 2 == 0 ? draws->symbol(0, arithmetic::kModulus - 1)
                                  : draws->symbol(kPlus, kTimes));
    }
    write_answered(context, source, {value_of(source)}, out);
  };
  return t;
}

}  // namespace bamtrain

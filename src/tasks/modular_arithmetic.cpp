// Expressions with brackets, modulo 5.

#include "tasks/answered.h"
#include "tasks/arithmetic.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo modular_arithmetic_task() {
  TaskInfo t = answered_task(11, arithmetic::kModulus);  // input 10 is not used
  t.name = "modular_arithmetic";
  t.description = "the value modulo 5 of an expression in brackets";
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.symbol = [](int32_t id) { return arithmetic::character("01234+-*() _", id); };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    constexpr arithmetic::Signs kSigns = {5, 6, 7, 8, 9};
    Symbols source;
    const int32_t value = arithmetic::draw_expression(length, kSigns, draws, &source);
    write_answered(context, source, {value}, out);
  };
  return t;
}

}  // namespace bamtrain

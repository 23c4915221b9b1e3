// The product of two binary numbers.

#include "tasks/answered.h"
#include "tasks/binary_pair.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo binary_multiplication_task() {
  TaskInfo t = answered_task(3, 3);
  t.name = "binary_multiplication";
  t.description = "n 2 m: their product in binary, the lowest digit first, then 2 and zeros";
  t.terminator = kTerminator;
  t.most_length = 4096;  // a product takes quadratic time
  t.most_inputs = [](int64_t length) { return 2 * length; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const binary::Pair p = binary::draw_pair(length, draws);
    // One token has no position for the digit of 0.
    const Symbols product = length == 1 ? Symbols() : binary::trimmed(binary::product(p.n, p.m));
    write_answered(context, p.source, terminated(product, length), out);
  };
  return t;
}

}  // namespace bamtrain

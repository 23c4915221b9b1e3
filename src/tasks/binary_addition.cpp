// The sum of two binary numbers.

#include "tasks/answered.h"
#include "tasks/binary_pair.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo binary_addition_task() {
  TaskInfo t = answered_task(3, 3);
  t.name = "binary_addition";
  t.description = "n 2 m: their sum in binary, the lowest digit first, then 2 and zeros";
  t.terminator = kTerminator;
  t.most_inputs = [](int64_t length) { return 2 * length + 1; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const binary::Pair p = binary::draw_pair(length, draws);
    const Symbols answer = terminated(binary::trimmed(binary::sum(p.n, p.m)), length + 1);
    write_answered(context, p.source, answer, out);
  };
  return t;
}

}  // namespace bamtrain

// The parity of a string.

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo parity_check_task() {
  TaskInfo t = answered_task(2, 2);
  t.name = "parity_check";
  t.description = "1 if the number of ones is odd";
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const Symbols source = draws->symbols(length, 0, 1);
    int32_t odd = 0;
    for (const int32_t bit : source) odd ^= bit;
    write_answered(context, source, {odd}, out);
  };
  return t;
}

}  // namespace bamtrain

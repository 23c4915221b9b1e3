// Reverses a bit string.

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo reverse_string_task() {
  TaskInfo t = answered_task(2, 2);
  t.name = "reverse_string";
  t.description = "the bits, the last one first";
  t.most_inputs = [](int64_t length) { return 2 * length; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const Symbols source = draws->symbols(length, 0, 1);
    write_answered(context, source, Symbols(source.rbegin(), source.rend()), out);
  };
  return t;
}

}  // namespace bamtrain

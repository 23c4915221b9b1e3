// Repeats a bit string twice.

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo duplicate_string_task() {
  TaskInfo t = answered_task(2, 2);
  t.name = "duplicate_string";
  t.description = "the bits twice";
  t.most_inputs = [](int64_t length) { return 3 * length; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const Symbols source = draws->symbols(length, 0, 1);
    Symbols answer = source;
    answer.insert(answer.end(), source.begin(), source.end());
    write_answered(context, source, answer, out);
  };
  return t;
}

}  // namespace bamtrain

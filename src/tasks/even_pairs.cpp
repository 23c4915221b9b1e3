// Whether the number of unequal adjacent pairs is even.

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo even_pairs_task() {
  TaskInfo t = answered_task(2, 2);
  t.name = "even_pairs";
  t.description = "1 if the number of differing neighbours is odd";
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const Symbols source = draws->symbols(length, 0, 1);
    int32_t odd = 0;
    for (size_t i = 1; i < source.size(); ++i) odd ^= source[i] != source[i - 1];
    write_answered(context, source, {odd}, out);
  };
  return t;
}

}  // namespace bamtrain

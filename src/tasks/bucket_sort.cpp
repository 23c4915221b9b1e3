// Sorts five kinds of tokens.

#include <algorithm>

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo bucket_sort_task() {
  TaskInfo t = answered_task(5, 5);
  t.name = "bucket_sort";
  t.description = "the tokens, of five kinds, in ascending order";
  t.most_inputs = [](int64_t length) { return 2 * length; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const Symbols source = draws->symbols(length, 0, 4);
    Symbols answer = source;
    std::sort(answer.begin(), answer.end());
    write_answered(context, source, answer, out);
  };
  return t;
}

}  // namespace bamtrain

// Reverses the source.

#include "tasks/continued.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo reverse_task() {
  constexpr int32_t M = 31;
  TaskInfo t = task_of_ids<M>();
  t.name = "reverse";
  t.end = DataIds<M>::eos;
  t.description = "the source's tokens, the last one first";
  t.most_inputs = [](int64_t length) { return 2 * length + 2; };
  t.draw = [](const TaskContext&, int64_t length, Draws* draws, Example* out) {
    const Symbols src = draws->symbols(length, 0, M);
    write_continued<M>(src, Separator::sep, Symbols(src.rbegin(), src.rend()), out);
  };
  return t;
}

}  // namespace bamtrain

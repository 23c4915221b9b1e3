// Repeats the source.

#include "tasks/continued.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo copy_task() {
  constexpr int32_t M = 31;
  TaskInfo t = task_of_ids<M>();
  t.name = "copy";
  t.end = DataIds<M>::eos;
  t.description = "the source's tokens again";
  t.most_inputs = [](int64_t length) { return 2 * length + 2; };
  t.draw = [](const TaskContext&, int64_t length, Draws* draws, Example* out) {
    const Symbols src = draws->symbols(length, 0, M);
    write_continued<M>(src, Separator::sep, src, out);
  };
  return t;
}

}  // namespace bamtrain

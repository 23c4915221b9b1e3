// Sorts the source.

#include <algorithm>

#include "tasks/continued.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo sort_task() {
  constexpr int32_t M = 31;
  TaskInfo t = task_of_ids<M>();
  t.name = "sort";
  t.end = DataIds<M>::eos;
  t.description = "the source's tokens in ascending order";
  t.most_inputs = [](int64_t length) { return 2 * length + 2; };
  t.draw = [](const TaskContext&, int64_t length, Draws* draws, Example* out) {
    const Symbols src = draws->symbols(length, 0, M);
    Symbols trg = src;
    std::sort(trg.begin(), trg.end());
    write_continued<M>(src, Separator::sep, trg, out);
  };
  return t;
}

}  // namespace bamtrain

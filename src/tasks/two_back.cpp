// The token two positions back, at every token.

#include "tasks/continued.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo two_back_task() {
  constexpr int32_t M = 15;
  TaskInfo t = task_of_ids<M>();
  t.name = "two_back";
  t.description = "for every token the one two places before it, 0 for the first two";
  t.most_inputs = [](int64_t length) { return length + 3; };
  t.draw = [](const TaskContext&, int64_t length, Draws* draws, Example* out) {
    Symbols text = draws->symbols(length, 1, M);
    text.insert(text.begin(), 0);
    Symbols labels(text.size(), 0);
    for (size_t i = 2; i < text.size(); ++i) labels[i] = text[i - 2];
    write_labelled<M>(text, labels, out);
  };
  return t;
}

}  // namespace bamtrain

// The content of a stack after pushes and pops.

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo stack_manipulation_task() {
  constexpr int32_t kPop = 2, kPushZero = 3, kPushOne = 4;
  TaskInfo t = answered_task(5, 3);
  t.name = "stack_manipulation";
  t.description = "a stack, bottom first, then 2: pop, 3: push 0, 4: push 1; the result, top first";
  t.terminator = kTerminator;
  t.most_inputs = [](int64_t length) { return 2 * length + 1; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const int64_t held = length == 1 ? 1 : draws->between(1, length - 1);
    Symbols stack = draws->symbols(held, 0, 1), source = stack;
    for (int64_t i = held; i < length; ++i) {
      const int32_t action = draws->symbol(kPop, kPushOne);
      source.push_back(action);
      if (action != kPop) {
        stack.push_back(action - kPushZero);
      } else if (!stack.empty()) {
        stack.pop_back();
      }
    }
    write_answered(context, source, terminated(Symbols(stack.rbegin(), stack.rend()), length + 1),
                   out);
  };
  return t;
}

}  // namespace bamtrain

// The position after moving around a cycle of five places.

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo cycle_navigation_task() {
  constexpr int32_t kPlaces = 5;
  TaskInfo t = answered_task(3, kPlaces);
  t.name = "cycle_navigation";
  t.description = "the position on a cycle of five after steps of 0: back, 1: none, 2: forward";
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const Symbols source = draws->symbols(length, 0, 2);
    int32_t place = 0;
    for (const int32_t step : source) place = (place + step - 1 + kPlaces) % kPlaces;
    write_answered(context, source, {place}, out);
  };
  return t;
}

}  // namespace bamtrain

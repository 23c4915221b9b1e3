// Every other bit, then the bits between.

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

TaskInfo odds_first_task() {
  TaskInfo t = answered_task(2, 2);
  t.name = "odds_first";
  t.description = "every other bit, then those between";
  t.options = {{"first",
                "which positions come first, counted from 1: even ones, as in the published code, "
                "or odd ones, as in the papers' examples",
                std::string("even"),
                {"even", "odd"}}};
  t.most_inputs = [](int64_t length) { return 2 * length; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    const Symbols bits = draws->symbols(length, 0, 1);
    const size_t first = context.options.text("first") == "even" ? 1 : 0;
    Symbols answer;
    for (const size_t from : {first, 1 - first}) {
      for (size_t i = from; i < bits.size(); i += 2) answer.push_back(bits[i]);
    }
    write_answered(context, bits, answer, out);
  };
  return t;
}

}  // namespace bamtrain

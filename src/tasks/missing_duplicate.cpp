// The missing bit of a string that appears twice.

#include <utility>

#include "tasks/answered.h"
#include "tasks/list.h"

namespace bamtrain {

namespace {

constexpr int32_t kMissing = 2, kFiller = 3;

}  // namespace

TaskInfo missing_duplicate_task() {
  TaskInfo t = answered_task(4, 2);
  t.name = "missing_duplicate";
  t.description = "a string given twice, one bit replaced by 2: that bit; 3 pads an odd length";
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.draw = [](const TaskContext& context, int64_t length, Draws* draws, Example* out) {
    if (length == 1) return write_answered(context, {1}, {1}, out);
    Symbols source = draws->symbols(length / 2, 0, 1);
    const Symbols once = source;
    source.insert(source.end(), once.begin(), once.end());
    const auto place = static_cast<size_t>(draws->below(length / 2 * 2));
    const int32_t lost = std::exchange(source[place], kMissing);
    if (length % 2 == 1) source.push_back(kFiller);
    write_answered(context, source, {lost}, out);
  };
  return t;
}

}  // namespace bamtrain

// The class of the item with the highest priority (Velickovic et al., "softmax is not enough (for
// sharp out-of-distribution)", 2024; as ASEntmax trains it). The input is a query, which is an
// uninformative random number, then the items in random order.

#include <cstdio>

#include "core/retrieval_input.h"
#include "tasks/list.h"

namespace bamtrain {

namespace {

/// "3:0.840188", the query "?:0.394383".
std::string show(int32_t id) {
  const RetrievalInput input = RetrievalInput::of(id);
  char number[16];
  std::snprintf(number, sizeof number, "%.6f", input.value());
  const bool query = input.of_class == RetrievalInput::kQuery;
  return (query ? "?" : std::to_string(input.of_class)) + ":" + number;
}

}  // namespace

TaskInfo max_retrieval_task() {
  TaskInfo t;
  t.name = "max_retrieval";
  t.description = "items, each a class and a priority: the class of the highest";
  t.lengths = {5, 16};
  t.of_items = true;
  t.inputs = RetrievalInput::kInputs;
  t.classes = RetrievalInput::kClasses;
  t.symbol = show;
  t.label = [](int32_t target) { return std::to_string(target); };
  t.most_inputs = [](int64_t length) { return length + 1; };
  t.draw = [](const TaskContext&, int64_t length, Draws* draws, Example* out) {
    const auto number = [draws] {
      return static_cast<int32_t>(draws->below(RetrievalInput::kNumbers));
    };
    out->add(RetrievalInput{RetrievalInput::kQuery, number()}.id());
    RetrievalInput highest = {0, -1};
    for (int64_t i = 0; i < length; ++i) {
      RetrievalInput item = {draws->symbol(0, RetrievalInput::kClasses - 1), number()};
      // The highest priority is unique: equal ones are redrawn.
      while (item.number == highest.number) item.number = number();
      if (item.number > highest.number) highest = item;
      out->add(item.id());
    }
    out->targets.back() = highest.of_class;
  };
  return t;
}

}  // namespace bamtrain

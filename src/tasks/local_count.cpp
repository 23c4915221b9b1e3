// The position of each token in its run.

#include "tasks/continued.h"
#include "tasks/list.h"

namespace bamtrain {

namespace {

// The published code has 15, too few for the labels of its longest run.
constexpr int32_t kLocalCountVocab = 47;
constexpr int32_t kSymbols = 16;
constexpr int64_t kPerRun = 25, kShortestRun = 2, kLongestRun = 48;

}  // namespace

TaskInfo local_count_task() {
  TaskInfo t = task_of_ids<kLocalCountVocab>();
  t.name = "local_count";
  t.description = "for every token the number of equal tokens directly before it";
  t.lengths = {64, 128};
  t.least_length = kPerRun;
  t.most_inputs = [](int64_t length) { return length / kPerRun * kLongestRun + 2; };
  t.draw = [](const TaskContext&, int64_t length, Draws* draws, Example* out) {
    Symbols text, labels;
    for (int64_t run = 0; run < length / kPerRun; ++run) {
      // A different symbol, so that each run ends where the next begins.
      const int32_t symbol = run == 0 ? draws->symbol(0, kSymbols - 1)
                                      : (text.back() + draws->symbol(1, kSymbols - 1)) % kSymbols;
      const int64_t tokens = draws->between(kShortestRun, kLongestRun);
      for (int64_t i = 0; i < tokens; ++i) {
        text.push_back(symbol);
        labels.push_back(static_cast<int32_t>(i));
      }
    }
    write_labelled<kLocalCountVocab>(text, labels, out);
  };
  return t;
}

}  // namespace bamtrain

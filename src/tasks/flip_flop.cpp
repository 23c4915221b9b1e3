// Reads back the last written bit (Liu et al., "Exposing attention glitches with flip-flop language
// modeling", 2023).

#include "tasks/continued.h"
#include "tasks/list.h"

namespace bamtrain {

namespace {

constexpr int32_t kFlipFlopVocab = 4, kWrite = 2, kIgnore = 3, kRead = 4;

}  // namespace

TaskInfo flip_flop_task() {
  TaskInfo t = task_of_ids<kFlipFlopVocab>();
  t.name = "flip_flop";
  t.end = DataIds<kFlipFlopVocab>::eos;
  t.description = "pairs of a command and a bit: the bit of the last write";
  t.options = {{"ignore",
                "probability of a write, instead of an ignore, between the first and the last "
                "command: 0.1 (sparse) or 0.8 (dense), the paper's two variants",
                std::string("sparse"),
                {"sparse", "dense"}}};
  t.least_length = 4;
  t.most_inputs = [](int64_t length) { return length / 2 * 2 + 1; };
  t.draw = [](const TaskContext& source, int64_t length, Draws* draws, Example* out) {
    const double writes = source.options.text("ignore") == "sparse" ? 0.1 : 0.8;
    Symbols src;
    int32_t written = 0;
    for (int64_t pairs = length / 2, i = 0; i + 1 < pairs; ++i) {
      const bool write = i == 0 || draws->chance(writes);
      const int32_t bit = draws->symbol(0, 1);
      src.push_back(write ? kWrite : kIgnore);
      src.push_back(bit);
      if (write) written = bit;
    }
    src.push_back(kRead);
    write_continued<kFlipFlopVocab>(src, Separator::none, {written}, out);
  };
  return t;
}

}  // namespace bamtrain

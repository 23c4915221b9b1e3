#include "tasks/file.h"

namespace bamtrain {

namespace {

TaskInfo make_file_task() {
  TaskInfo t;
  t.name = "file";
  t.description =
      "sequences of a file of JSON lines: {\"prompt\", \"target\"}, {\"input\", \"targets\"}";
  t.options = {{"path", "the JSON lines file", ""},
               {"tokenizer", "file of the tokenizer of its texts; empty: it holds ids", ""}};
  t.lengths = {1, 1};
  t.of_file = true;
  t.most_inputs = [](int64_t length) { return length; };
  return t;
}

}  // namespace

const TaskInfo& file_task() {
  static const TaskInfo info = make_file_task();
  return info;
}

}  // namespace bamtrain

#pragma once
// `bamdata synth`: prints sequences of a task.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

struct SynthOptions {
  std::string task;
  std::vector<std::string> settings;  // the task's options, each KEY=VALUE
  std::vector<int64_t> lengths;       // shortest and longest; empty: the task's
  int64_t first = 0, count = 5;       // sequences
  uint64_t seed = 0;
  bool json = false;  // print lines of {"length", "input", "targets"}
};

/// Prints sequences first, ..., first + count - 1 of the training set of that seed, each of its own
/// length. Throws Error (ExitCode::usage) for an unknown task or option and for lengths outside the
/// task's range.
void synth(const SynthOptions& options, std::FILE* out);

/// Tasks that can be shown without a file of sequences.
std::vector<const TaskInfo*> shown_tasks();

/// "Tasks:" and one line per task, for the help.
std::string list_of_tasks();

}  // namespace bamtrain

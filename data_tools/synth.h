#pragma once
// `bamdata synth`: sequences of a task.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

struct SynthOptions {
  std::string task;
  std::vector<std::string> settings;  // of the task's options, KEY=VALUE each
  std::vector<int64_t> lengths;       // shortest and longest; empty: the task's
  int64_t first = 0, count = 5;       // sequences
  uint64_t seed = 0;
  bool json = false;  // lines of {"length", "input", "targets"}, for programs
};

/// Prints sequences first, ..., first + count - 1 of the training set of that seed, each of its own
/// length. Error (ExitCode::usage) for a task, an option or lengths that are not there.
void synth(const SynthOptions& options, std::FILE* out);

/// "Tasks:" and a line each, for the help.
std::string list_of_tasks();

}  // namespace bamtrain

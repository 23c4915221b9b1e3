#pragma once
// What results.json says of tasks: their numbers against length, and maps by length and depth.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/results.h"
#include "record/run_lines.h"
#include "report/heat_map.h"

namespace bamtrain {

struct TaskNumber {
  std::optional<int64_t> length;  // none: of a file, whose texts have their own
  double value = 0;               // NaN: not finite
  StandardError error;
};

/// A number of a task, as "exact_match" of "passkey".
struct TaskNumbers {
  std::string task, number;
  std::vector<TaskNumber> at;
};

struct MeasuredTasks {
  std::vector<TaskNumbers> numbers;
  std::vector<HeatMap> maps;
};

/// In the order of the file, each by ascending length: of each result all numbers that have a
/// standard error beside them. Of validation and perplexity against length nothing: those have
/// files of their own. Error (ExitCode::io) at the file where a result is none of a task.
MeasuredTasks measured_tasks(const Results& results);

}  // namespace bamtrain

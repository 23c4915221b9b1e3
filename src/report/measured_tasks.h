#pragma once
// Task results in results.json: numbers against length, and maps by length and depth.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/results.h"
#include "record/run_lines.h"
#include "report/heat_map.h"

namespace bamtrain {

struct TaskNumber {
  std::optional<int64_t> length;  // nullopt: texts of a file have their own
  double value = 0;               // NaN: not finite
  StandardError error;
};

/// One number of a task, such as "exact_match" of "passkey".
struct TaskNumbers {
  std::string task, number;
  std::vector<TaskNumber> at;
};

struct MeasuredTasks {
  std::vector<TaskNumbers> numbers;
  std::vector<HeatMap> maps;
};

/// All task numbers that have a standard error, in file order, each by ascending length. Validation
/// and perplexity against length have their own files. Throws Error (ExitCode::io) at the file for
/// a malformed task result.
MeasuredTasks measured_tasks(const Results& results);

}  // namespace bamtrain

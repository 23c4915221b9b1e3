#pragma once
// The settings of a run's validation pass, for results.json and checkpoint.best.

#include <nlohmann/json_fwd.hpp>

#include "data/task_values.h"
#include "train/run_config.h"

namespace bamtrain {

/// {"tokens", "data": the shards' path, or the task with its options, and its "length"}. Throws
/// Error as task_values.
inline nlohmann::json validation_values(const RunConfig& c) {
  nlohmann::json of = {{"tokens", c.eval.tokens}};
  if (const auto& task = c.data.val_task) {
    of["data"] = task_values(*task);
    of["length"] = {task->lengths.shortest, task->lengths.longest};
  } else {
    of["data"] = c.data.val;
  }
  return of;
}

}  // namespace bamtrain

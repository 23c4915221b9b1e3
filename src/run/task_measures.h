#pragma once
// What eval.tasks asks for, while a run trains and at its end.

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "dist/communicator.h"
#include "record/results.h"
#include "train/trainer.h"

namespace bamtrain {

/// Whether an entry's turn is after `step` steps.
bool tasks_due(const RunConfig& c, int64_t step);

/// The entries whose turn it is, on sequences drawn for this: {"copy@64": as score_task, ...}, by a
/// backend on the trainer's device that is not the trainer's. Collective, on all processes the
/// same.
nlohmann::ordered_json measure_tasks(const Trainer& trainer, Backend& beside, const RunConfig& c,
                                     Communicator& comm, int64_t step);

/// All entries, of the checkpoint in `folder`, which rank 0 reads. What `results`, rank 0's, has of
/// these weights already is not measured again; each length is on the disk before the next begins.
/// `tell` gets a line for each, on rank 0. Collective. Error (checkpoint, io, device).
void measure_tasks_at_end(const RunConfig& c, Backend& backend, Communicator& comm,
                          const std::string& folder, Results* results,
                          const std::function<void(const std::string&)>& tell);

/// Memory of the evaluation of the entries, beside that of the steps (while a run trains) and after
/// it, with the masters (at its end).
struct TaskMemory {
  int64_t beside = 0, after = 0;
};
TaskMemory task_memory(const RunConfig& c, Backend& backend);

/// Error (ExitCode::config) naming the entry that could not be measured.
void check_tasks(const RunConfig& c, Backend& backend);

}  // namespace bamtrain

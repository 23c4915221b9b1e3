#pragma once
// Initializes a new run's parameters from another model: a checkpoint or a Hugging Face folder,
// written by `bamtrain export` or anyone else.

#include <nlohmann/json_fwd.hpp>

#include "checkpoint/checkpoint.h"
#include "model/parameters.h"
#include "run/train.h"

namespace bamtrain {

/// In state.json of a run that started so: {"folder", "files": {name: SHA-256}}, with
/// init_from.optimizer also kOptimizerSteps (init_from_optimizer.h).
inline constexpr const char* kInitializedFrom = "initialized_from";

/// Checks that init_from.folder has exactly the model's tensors in their shapes, except those in
/// init_from.new, which it must not have. What shapes do not show is checked by
/// check_init_from_settings and check_init_from_state, the optimizer state by
/// check_init_from_optimizer. Throws Error (ExitCode::checkpoint) naming the tensor, what the model
/// needs, what the folder has, and the key to change. Reads all that read_init_from would read, and
/// refuses the same values and digests.
void check_init_from(const TrainRun& run, const ParameterLayout& layout, const Warn& warn);

/// Checks the same, then reads the folder's parameters into `master_weights`, (elements) f32 in
/// host memory, without rounding. Does not change those of init_from.new. Returns what state.json
/// keeps. Throws Error (ExitCode::checkpoint), also if check_values refuses a value.
nlohmann::json read_init_from(const TrainRun& run, const ParameterLayout& layout,
                              const Tensor& master_weights, const Warn& warn);

}  // namespace bamtrain

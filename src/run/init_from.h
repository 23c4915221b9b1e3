#pragma once
// A new run's parameters out of another model: of a Hugging Face folder that `bamtrain export` or
// anyone else has written.

#include <nlohmann/json_fwd.hpp>

#include "checkpoint/checkpoint.h"
#include "model/parameters.h"
#include "run/train.h"

namespace bamtrain {

/// In state.json of a run that started so: {"folder", "files": {name: SHA-256}}, with
/// init_from.optimizer also kOptimizerSteps (init_from_optimizer.h).
inline constexpr const char* kInitializedFrom = "initialized_from";

/// Whether the folder that init_from names has the model's tensors, shape by shape, and none
/// besides; what init_from.new names it must not have. What no shape shows is compared as
/// check_init_from_settings and check_init_from_state have it, moments as
/// check_init_from_optimizer. Error (ExitCode::checkpoint) naming the tensor, what the model needs,
/// what the folder has, and the key to change. Reads what read_init_from would and refuses the same
/// values and digests.
void check_init_from(const TrainRun& run, const ParameterLayout& layout, const Warn& warn);

/// The same, and then reads: the parameters in `master_weights`, (elements) f32 in host memory,
/// become the folder's, rounded to nothing; those of init_from.new are left alone. Returns what
/// state.json keeps. Error (ExitCode::checkpoint) also where check_values refuses a value.
nlohmann::json read_init_from(const TrainRun& run, const ParameterLayout& layout,
                              const Tensor& master_weights, const Warn& warn);

}  // namespace bamtrain

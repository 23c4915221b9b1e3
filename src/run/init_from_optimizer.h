#pragma once
// Starts a new run with the optimizer state of a checkpoint, if init_from.optimizer is true. The
// optimizer continues as in the checkpoint's run, with this run's data, length and rates.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/parameters.h"
#include "run/train.h"

namespace bamtrain {

/// In state.json under "initialized_from": the steps that the optimizer state has seen before the
/// run's first. Bias correction uses the total number of steps.
inline constexpr const char* kOptimizerSteps = "optimizer_steps";

/// Throws Error (ExitCode::config) if init_from.folder is not a checkpoint, was trained with
/// another optimizer or other betas, or has optimizer state of other parameters than the run
/// trains; (ExitCode::checkpoint) as open_checkpoint.
void check_init_from_optimizer(const TrainRun& run, const ParameterLayout& layout);

/// Reads the moments into `first` and `second`, (elements) f32 in host memory. Does not change
/// those of untrained parameters. Returns their number of steps. REQUIRES:
/// check_init_from_optimizer.
int64_t read_init_from_optimizer(const TrainRun& run, const ParameterLayout& layout,
                                 const Tensor& first, const Tensor& second);

/// kOptimizerSteps of `initialized_from` of the state in `path`; 0 if missing. Throws Error
/// (ExitCode::checkpoint) if it is not a number of steps.
int64_t optimizer_steps(const nlohmann::json& initialized_from, const std::string& path);

}  // namespace bamtrain

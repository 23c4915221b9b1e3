#pragma once
// The moments of a checkpoint that a new run begins with, where init_from.optimizer is true: the
// optimizer goes on as if the checkpoint's run did, with this run's data, length and rates.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/parameters.h"
#include "run/train.h"

namespace bamtrain {

/// In state.json under "initialized_from": the steps that the moments have seen before the run's
/// first. An optimizer corrects by the number of all.
inline constexpr const char* kOptimizerSteps = "optimizer_steps";

/// Error (ExitCode::config) where init_from.folder is no checkpoint, was trained by another
/// optimizer or with other betas, or has moments of other parameters than the run trains;
/// (ExitCode::checkpoint) as open_checkpoint.
void check_init_from_optimizer(const TrainRun& run, const ParameterLayout& layout);

/// Reads the moments into `first` and `second`, (elements) f32 in host memory; what is not trained
/// is left alone. Returns their steps. REQUIRES: check_init_from_optimizer.
int64_t read_init_from_optimizer(const TrainRun& run, const ParameterLayout& layout,
                                 const Tensor& first, const Tensor& second);

/// What `initialized_from` of the state in `path` says under kOptimizerSteps; 0 where it does not.
/// Error (ExitCode::checkpoint) for what is no number of steps.
int64_t optimizer_steps(const nlohmann::json& initialized_from, const std::string& path);

}  // namespace bamtrain

#include "run/init_from_optimizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/json.h"
#include "record/run_files.h"
#include "run/init_from.h"

namespace bamtrain {

void check_init_from_optimizer(const TrainRun& run, const ParameterLayout& layout) {
  const std::string& folder = run.config.init_from.folder;
  std::error_code ignored;
  if (!std::filesystem::exists(folder + "/state.json", ignored)) {
    throw Error(ExitCode::config, "init_from.optimizer",
                "a checkpoint in init_from.folder, to take its optimizer state",
                folder + " without a state.json",
                "name a run's checkpoint there, or set this to false");
  }
  const Checkpoint source = open_checkpoint(folder);
  check_run_state(source);
  for (const char* key : {"optimizer.name", "optimizer.betas"}) {
    const std::string theirs = text_at(source.state["config"], key);
    const std::string ours = text_at(run.resolved, key);
    if (theirs == ours) continue;
    throw Error(ExitCode::config, key,
                theirs + ", as in " + folder + ", since init_from.optimizer is true", ours,
                "set it to that, or init_from.optimizer to false");
  }
  try {
    check_tensors(SafetensorsFile::open(source.optimizer_file()),
                  optimizer_tensors(layout, Tensor(nullptr, Dtype::f32, {layout.elements()}),
                                    Tensor(nullptr, Dtype::f32, {layout.elements()})));
  } catch (const Error& e) {
    if (e.code() != ExitCode::checkpoint) throw;
    throw e.as(ExitCode::config, e.where(),
               "train the same parameters as the checkpoint's run, or set init_from.optimizer to "
               "false");
  }
}

int64_t read_init_from_optimizer(const TrainRun& run, const ParameterLayout& layout,
                                 const Tensor& first, const Tensor& second) {
  const Checkpoint source = open_checkpoint(run.config.init_from.folder);
  read_tensors(SafetensorsFile::open(source.optimizer_file()),
               optimizer_tensors(layout, first, second));
  const nlohmann::json before = source.state.value(kInitializedFrom, nlohmann::json());
  return optimizer_steps(before, source.folder + "/state.json") + source.step;
}

int64_t optimizer_steps(const nlohmann::json& initialized_from, const std::string& path) {
  if (!initialized_from.is_object() || !initialized_from.contains(kOptimizerSteps)) return 0;
  const nlohmann::json& steps = initialized_from[kOptimizerSteps];
  if (steps.is_number_integer() && steps >= 0 && steps <= kMaxSteps) return steps.get<int64_t>();
  throw Error(ExitCode::checkpoint, path + ": " + kInitializedFrom + "." + kOptimizerSteps,
              "a number of steps up to " + std::to_string(kMaxSteps), steps.dump(), kDamagedRemedy);
}

}  // namespace bamtrain

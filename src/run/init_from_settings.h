#pragma once
// What config.json of a folder of weights says about its model, other than shapes.

#include <nlohmann/json_fwd.hpp>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// The parts named by init_from.new, in which the folder's model differs on purpose. `prior`:
/// without the mix of heads.
struct NewParts {
  bool prior = false, scale = false, normalizer = false, mix = false;
};

/// Whether a mechanism's formula reads this option, which a folder and the run have. Other options
/// say how parameters are initialized, which of them are trained and which decay.
bool of_formula(const std::string& option, const nlohmann::json& theirs,
                const nlohmann::json& ours);

/// Compares config.json of init_from.folder with the run's model where no tensor's shape shows the
/// difference. Warns if the folder has neither this file nor a checkpoint's state. Throws Error
/// (ExitCode::checkpoint) naming file, member and key if the weights would mean something else:
/// other heads, another activation, another kind of norm. Other differences go to `warn`, once
/// each: a norm's eps, priors, scale and normalizer with the options that their formulas read,
/// windows, documents, a Llama's rope. Members missing in bamtrain's own configuration have the
/// defaults of the Python code that goes with an export. A missing option of a mechanism is newer
/// than the folder and has its value of config_version 1. check_init_from_sizes compares the sizes.
void check_init_from_settings(const RunConfig& config, NewParts parts, const Warn& warn);

}  // namespace bamtrain

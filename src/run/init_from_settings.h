#pragma once
// What config.json of a folder of weights says of its model beside the shapes.

#include <nlohmann/json_fwd.hpp>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// What init_from.new names: of this the folder's model has another, on purpose. `prior`: but for
/// what mixes heads beside it.
struct NewParts {
  bool prior = false, scale = false, normalizer = false, mix = false;
};

/// Whether an option of a mechanism, which a folder and the run have, is one that its formula
/// reads, not one that says how parameters begin, which of them are trained and which decay.
bool of_formula(const std::string& option, const nlohmann::json& theirs,
                const nlohmann::json& ours);

/// Compares config.json of init_from.folder with the run's model, as far as no tensor's shape shows
/// the difference; that there is neither this nor a checkpoint's state is told by `warn`. Error
/// (ExitCode::checkpoint) naming file, member and key where the weights would mean something else:
/// other heads, another activation, another kind of norm. What else differs (a norm's eps, priors,
/// scale and normalizer with the options that their formulas read, windows, documents, a Llama's
/// rope) is told by `warn`, each difference once. What bamtrain's own configuration lacks has the
/// default of the Python code that goes with an export; an option of a mechanism is newer than it
/// and stands for its value in config_version 1. Sizes: as check_init_from_sizes.
void check_init_from_settings(const RunConfig& config, NewParts parts, const Warn& warn);

}  // namespace bamtrain

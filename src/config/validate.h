#pragma once
// Checks of relations between keys.

#include <string>
#include <vector>

#include "config/origin.h"
#include "train/run_config.h"

namespace bamtrain {

/// What a configuration is read for. Some mechanisms are for evaluation only. An evaluation may use
/// another prior than training did, so it skips checks of keys that only training reads: learning
/// rates by name, parameters missing from init_from, lengths of the final evaluation. Settings
/// without effect are refused only for training.
enum class ConfigUse { training, evaluation };

/// Checks every key's own limits and every relation between keys: heads and width, sequence lengths
/// and position tables, tokens per step and microbatches, lanes, schedule and steps, validation and
/// its data, names in lists. Throws Error (ExitCode::config) with the key, what is allowed, what
/// was found and the remedy. A zero in kv_heads or lanes means the derived value and is accepted.
void validate(const RunConfig& config);

/// The same; errors also name the file or override that wrote the key.
void validate(const RunConfig& config, const Origin& origin, ConfigUse use = ConfigUse::training);

/// The valid names in optimizer.lr_multipliers: groups and parameters of the prior, mix, scale and
/// normalizer that this model trains. REQUIRES: validate has accepted the model.
std::vector<std::string> multiplier_names(const RunConfig& config);

}  // namespace bamtrain

#pragma once
// What single keys cannot say: how they relate.

#include <string>
#include <vector>

#include "config/origin.h"
#include "train/run_config.h"

namespace bamtrain {

/// What a configuration is read for. Some mechanisms are for evaluation only. An evaluation may
/// have another prior than the training had: what the training alone reads is not checked against
/// it (learning rates by name, what init_from has not, lengths to evaluate at the end), and
/// settings that would do nothing are refused where a training is to begin alone.
enum class ConfigUse { training, evaluation };

/// Checks every key's own limits and every relation between keys: heads and width, sequence lengths
/// and position tables, tokens per step and micro-batches, lanes, schedule and steps, validation
/// and its data, names in lists. Error (ExitCode::config) names the key, what is allowed, what was
/// found and the remedy. A zero in kv_heads or lanes stands for the derived value and is accepted.
void validate(const RunConfig& config);

/// The same with the file or override that wrote a key in front of it.
void validate(const RunConfig& config, const Origin& origin, ConfigUse use = ConfigUse::training);

/// The names that optimizer.lr_multipliers may have: groups and parameters of the prior and the
/// scale of which this model trains something. REQUIRES: validate has accepted the model.
std::vector<std::string> multiplier_names(const RunConfig& config);

}  // namespace bamtrain

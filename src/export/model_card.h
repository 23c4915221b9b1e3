#pragma once
// README.md of an exported model.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "checkpoint/checkpoint.h"
#include "model/parameters.h"
#include "train/run_config.h"

namespace bamtrain {

struct CardOptions {
  bool llama = false;      // loads without code of its own
  bool as_trained = true;  // false: a mechanism is not that of the training
};

/// The card of a checkpoint: what the run's files say of it and nothing else. Beside the checkpoint
/// these are metrics.jsonl (the validation loss of its step, as trained) and perplexity.json (where
/// it was written for this step and these mechanisms); where one is missing or silent, so is the
/// card. `resolved`: the config as resolved_json writes it, whose parts "model", "optimizer",
/// "schedule" and "train" are shown. Error (ExitCode::checkpoint) for a damaged perplexity.json.
std::string model_card(const Checkpoint& checkpoint, const RunConfig& config,
                       const nlohmann::ordered_json& resolved, const ParameterLayout& layout,
                       const CardOptions& options);

}  // namespace bamtrain

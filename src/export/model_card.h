#pragma once
// README.md of an exported model.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "model/parameters.h"
#include "train/run_config.h"

namespace bamtrain {

/// The tokenizer that goes with a model.
struct CardTokenizer {
  std::string kind;  // "SentencePiece"
  std::string file;
  int64_t pieces = 0;
  std::string sha256;
  std::string left_out;  // why it has no tokenizer.json, a clause; empty: it has one
};

struct CardOptions {
  bool own_code = false;   // loads with the folder's own Python files
  bool as_trained = true;  // false: a mechanism is not that of the training
  std::optional<CardTokenizer> tokenizer;
};

/// The card of a checkpoint: what the run's files say of it and nothing else. Beside the checkpoint
/// these are metrics.jsonl (the validation loss of its step, as trained) and perplexity.json (where
/// it was written for this step and these mechanisms); where one is missing or silent, so is the
/// card. `resolved`: the config as resolved_json writes it, whose parts "model", "optimizer",
/// "schedule" and "train" are shown. Error (ExitCode::io) where one of these files is damaged, or
/// cannot be read: as the report.
std::string model_card(const Checkpoint& checkpoint, const RunConfig& config,
                       const nlohmann::ordered_json& resolved, const ParameterLayout& layout,
                       const CardOptions& options);

}  // namespace bamtrain

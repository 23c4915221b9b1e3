#pragma once
// README.md of an exported model.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "model/parameters.h"
#include "train/run_config.h"

namespace bamtrain {

/// The tokenizer included with a model.
struct CardTokenizer {
  std::string kind;  // "SentencePiece"
  std::string file;
  int64_t pieces = 0;
  std::string sha256;
  std::string left_out;  // a clause: why it has no tokenizer.json; empty if it has one
};

struct CardOptions {
  bool own_code = false;   // needs the folder's own Python files to load
  bool as_trained = true;  // false: a mechanism differs from the training's
  std::optional<CardTokenizer> tokenizer;
};

/// The model card of a checkpoint, from the run's files only. Besides the checkpoint these are
/// metrics.jsonl (the validation loss of its step, as trained) and perplexity.json (if written for
/// this step and these mechanisms). The card omits what a file is missing. `resolved`: the config
/// as resolved_json writes it; the card shows its parts "model", "optimizer", "schedule" and
/// "train". Throws Error (ExitCode::io) if one of these files is damaged or cannot be read, as the
/// report.
std::string model_card(const Checkpoint& checkpoint, const RunConfig& config,
                       const nlohmann::ordered_json& resolved, const ParameterLayout& layout,
                       const CardOptions& options);

}  // namespace bamtrain

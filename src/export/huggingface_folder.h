#pragma once
// Exports a checkpoint as a folder that Hugging Face's transformers loads.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/tensor.h"
#include "model/parameters.h"
#include "train/run_config.h"

namespace bamtrain {

struct HuggingfaceRequest {
  std::string output;  // missing or empty
  // The SentencePiece model to include. If empty: the one that made the shards, searched for near
  // them, if the checkpoint records which it was.
  std::string tokenizer;
  bool with_tokenizer = true;
  bool sentencepiece = false;  // copy its file unchanged, without a tokenizer.json
  bool rounded = false;        // to bf16, except for the parameters of mechanisms
  int64_t max_shard_bytes = int64_t{1} << 62;
  bool as_trained = true;                 // false: a mechanism differs from the training's
  std::optional<int64_t> document_start;  // not set: from the config or the shards' manifest
};

/// Writes the folder. It appears complete and on disk, or not at all:
///
///   config.json, generation_config.json, README.md (model_card.h)
///   model.safetensors, or shards with an index (checkpoint/weights_folder.h)
///   configuration_bamtrain.py, modeling_bamtrain.py   if it is neither a Llama nor GPT-2
///   tokenizer.model, tokenizer.json, tokenizer_config.json   if a tokenizer is included
///   sentencepiece.model   instead, if `sentencepiece` is set
///
/// `master_weights`: the model's parameters, (elements) f32 in host memory. Throws Error:
/// - io: the folder has content or is not writable, or the disk is full;
/// - data: a tokenizer is not found, was not used in training, or has no tokenizer.json;
/// - usage: `sentencepiece` for another kind of tokenizer;
/// - config: documents are masked and nothing specifies where they begin.
void write_huggingface_folder(const HuggingfaceRequest& request, const Checkpoint& checkpoint,
                              const RunConfig& config, const nlohmann::ordered_json& resolved,
                              const ParameterLayout& layout, const Tensor& master_weights);

}  // namespace bamtrain

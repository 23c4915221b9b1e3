#pragma once
// A checkpoint as a folder that Hugging Face's transformers loads.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/tensor.h"
#include "model/parameters.h"
#include "train/run_config.h"

namespace bamtrain {

struct HuggingfaceRequest {
  std::string output;  // absent or empty
  // The SentencePiece model that goes with it; empty: the one that made the shards, near them,
  // where the checkpoint knows which it was.
  std::string tokenizer;
  bool with_tokenizer = true;
  bool sentencepiece = false;  // its file as it is, without a tokenizer.json
  bool rounded = false;        // to bf16, but for the parameters of mechanisms
  int64_t max_shard_bytes = int64_t{1} << 62;
  bool as_trained = true;                 // false: a mechanism is not that of the training
  std::optional<int64_t> document_start;  // none: as the config or the shards' manifest have it
};

/// Writes the folder, which appears complete and on the disk, or not at all:
///
///   config.json, generation_config.json, README.md (model_card.h)
///   model.safetensors, or shards with an index (checkpoint/weights_folder.h)
///   configuration_bamtrain.py, modeling_bamtrain.py   where it is neither a Llama nor GPT-2
///   tokenizer.model, tokenizer.json, tokenizer_config.json   where a tokenizer goes with it
///   sentencepiece.model   instead, where that is asked for
///
/// `master_weights`: the model's parameters, (elements) f32 in host memory. Errors: io (the folder
/// has content, cannot be written, the disk is full), data (a tokenizer that is not to be found,
/// that the model was not trained with, or that has no tokenizer.json), usage (`sentencepiece` of
/// another kind), config (documents are masked and nothing says where they begin).
void write_huggingface_folder(const HuggingfaceRequest& request, const Checkpoint& checkpoint,
                              const RunConfig& config, const nlohmann::ordered_json& resolved,
                              const ParameterLayout& layout, const Tensor& master_weights);

}  // namespace bamtrain

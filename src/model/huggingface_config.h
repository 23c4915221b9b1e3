#pragma once
// config.json of a model in Hugging Face's form.

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/dtype.h"
#include "model/model_config.h"

namespace bamtrain {

/// The ids that text generation needs to know; none: unknown, or the tokenizer has no such token.
struct SpecialTokens {
  std::optional<int64_t> bos, eos;
  std::optional<int64_t> document_start;  // where documents are masked, never none
};

/// Whether transformers' LlamaForCausalLM computes the same logits from the same weights, on single
/// documents: rope in every layer (ntk as the base it stands for; yarn to a whole number of
/// positions), no logit scale, softmax, no window, RMSNorm before each branch, SwiGLU, embeddings
/// as they are.
bool is_llama(const ModelConfig& config, int64_t sequence_length);

/// Whether transformers' GPT2LMHeadModel does: learned positions, no logit scale, softmax, no
/// window, a LayerNorm before each branch, an MLP without gate, biases, as many heads of keys as of
/// queries, which fill the width, embeddings as they are.
bool is_gpt2(const ModelConfig& config, int64_t sequence_length);

/// A Llama's or GPT-2's configuration where the model is one, else BamtrainConfig's of
/// src/export/huggingface/configuration_bamtrain.py, with every default and every derived number
/// written out. `sequence_length` is T of training, `dtype` that of the matrices in the folder.
nlohmann::ordered_json huggingface_config(const ModelConfig& config, int64_t sequence_length,
                                          Dtype dtype, const SpecialTokens& tokens);

/// transformers' name of the activation; GPT-2 has another for the first of its own.
const char* huggingface_activation(MlpKind kind);
const char* gpt2_activation(MlpKind kind);
/// Parts of it. BamtrainConfig's entry of a layer's prior, its scale and its normalizer.
nlohmann::ordered_json huggingface_prior(const ModelConfig& config, int64_t layer,
                                         int64_t sequence_length);
nlohmann::ordered_json huggingface_scale(const ModelConfig& config, int64_t sequence_length);
nlohmann::ordered_json huggingface_normalizer(const ModelConfig& config);
/// A Llama's rope_theta and rope_scaling, as transformers has read them since Llama 2. REQUIRES:
/// the layer's prior is of family rotary.
nlohmann::ordered_json huggingface_rope(const ModelConfig& config, int64_t layer,
                                        int64_t sequence_length);

}  // namespace bamtrain

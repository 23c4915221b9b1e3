#pragma once
// Writes a model's config.json in Hugging Face's format.

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/dtype.h"
#include "model/model_config.h"

namespace bamtrain {

/// Token ids that text generation needs; empty: unknown, or the tokenizer has no such token.
struct SpecialTokens {
  std::optional<int64_t> bos, eos;
  std::optional<int64_t> document_start;  // always set if documents are masked
};

/// Whether transformers' LlamaForCausalLM computes the same logits from the same weights, on single
/// documents. Requires rope in every layer (ntk as its equivalent base; yarn to a whole number of
/// positions), no logit scale, softmax, no window, RMSNorm before each branch, SwiGLU, unscaled
/// embeddings.
bool is_llama(const ModelConfig& config, int64_t sequence_length);

/// The same for transformers' GPT2LMHeadModel. Requires learned positions, no logit scale, softmax,
/// no window, LayerNorm before each branch, an MLP without gate, biases, as many key heads as query
/// heads, which fill the width, unscaled embeddings.
bool is_gpt2(const ModelConfig& config, int64_t sequence_length);

/// The configuration of a Llama or GPT-2 if the model is one, else of BamtrainConfig in
/// src/export/huggingface/configuration_bamtrain.py, with every default and derived number written
/// out. `sequence_length` is T of training, `dtype` that of the matrices in the folder.
nlohmann::ordered_json huggingface_config(const ModelConfig& config, int64_t sequence_length,
                                          Dtype dtype, const SpecialTokens& tokens);

/// transformers' name of the activation. GPT-2 has another name for gelu.
const char* huggingface_activation(MlpKind kind);
const char* gpt2_activation(MlpKind kind);
/// Parts of BamtrainConfig: the entry of a layer's prior, the scale and the normalizer.
nlohmann::ordered_json huggingface_prior(const ModelConfig& config, int64_t layer,
                                         int64_t sequence_length);
nlohmann::ordered_json huggingface_scale(const ModelConfig& config, int64_t sequence_length);
nlohmann::ordered_json huggingface_normalizer(const ModelConfig& config);
/// A Llama's rope_theta and rope_scaling, as transformers has read them since Llama 2. REQUIRES:
/// the layer's prior is of family rotary.
nlohmann::ordered_json huggingface_rope(const ModelConfig& config, int64_t layer,
                                        int64_t sequence_length);

}  // namespace bamtrain

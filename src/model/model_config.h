#pragma once
// Model configuration: plain structs, filled by src/config and by tests.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kinds.h"
#include "core/mechanism.h"
#include "mixes/mix.h"
#include "normalizers/normalizer.h"
#include "priors/prior.h"
#include "scales/scale.h"

namespace bamtrain {

/// What reads a sequence:
///   decoder        tokens; blocks of attention and mlp (model.h)
///   max_retrieval  the items of the task of this name; one attention between small networks
///                  (max_retrieval.h)
enum class ModelKind { decoder, max_retrieval };

/// Initial values of matrices and embeddings, C the width, L the layers:
///   gpt2   normal, std 0.02; residual projections (o_proj, down_proj) (2 L)^-0.5 times that
///   torch  PyTorch's defaults: linear layers U(+-1/sqrt(fan_in)), embeddings N(0, 1) (BAM)
///   neox   normal, std sqrt(2 / (5 C)); residual projections 2 / (L sqrt C) (DAPE)
///   plain  normal, std 0.02
///   lecun  Haiku's defaults (Chomsky tasks): linear layers N(0, 1/fan_in), embeddings
///          N(0, 0.02^2), both truncated at two standard deviations and not rescaled, so the
///          standard deviation of the values is 0.8796 times as large
enum class InitKind { gpt2, torch, neox, plain, lecun };

/// Where a block's norms are. The stream x begins as the embedding; f is attention, then the mlp:
///   pre   x += f(norm(x)); a norm before the head
///   post  x = norm(x + f(x)); no norm before the head (Chomsky tasks)
///   both  x += norm(f(norm(x))); a norm before the head (Gemma)
enum class NormPosition { pre, post, both };

/// Names in configs.
inline const std::vector<std::pair<std::string, ModelKind>> kModelKindNames = {
    {"decoder", ModelKind::decoder}, {"max_retrieval", ModelKind::max_retrieval}};

/// Names in configs and in exported folders.
inline const std::vector<std::pair<std::string, NormPosition>> kNormPositionNames = {
    {"pre", NormPosition::pre}, {"post", NormPosition::post}, {"both", NormPosition::both}};
inline const std::vector<std::pair<std::string, MlpKind>> kMlpNames = {
    {"swiglu", MlpKind::swiglu},
    {"geglu", MlpKind::geglu},
    {"gelu", MlpKind::gelu},
    {"gelu_erf", MlpKind::gelu_erf},
    {"relu", MlpKind::relu}};

/// Activation checkpointing: what the backward pass recomputes, bitwise identical.
///   none   nothing: a layer keeps 6 + 2 K / H + 3 F / C times (N, C), for gated mlps and heads
///          that make up the width; 2 more for NormPosition::both
///   mlp    the mlp's hidden layer: 3 F / C less, at the cost of one product of the forward pass
///   block  everything but the stream at the layer's entry, at the cost of most of a forward pass
enum class Recompute { none, mlp, block };

/// What a model keeps in memory:
///   training    what the backward pass reads
///   evaluation  no more than a forward pass needs
///   generation  the same, and the KV cache of every layer
enum class ModelUse { training, evaluation, generation };

struct MlpConfig {
  MlpKind kind = MlpKind::swiglu;
  int64_t hidden = 0;  // F
};

/// Which parts of a model have biases: the linear layers of attention and of the mlp, layernorm,
/// the head.
struct BiasParts {
  bool attention = false, mlp = false, norm = false, head = false;

  BiasParts() = default;
  BiasParts(bool all) : attention(all), mlp(all), norm(all) {}  // all but the head
  bool operator==(const BiasParts&) const = default;
};

/// Names in configs.
inline const std::vector<std::pair<std::string, bool BiasParts::*>> kBiasPartNames = {
    {"attention", &BiasParts::attention},
    {"mlp", &BiasParts::mlp},
    {"norm", &BiasParts::norm},
    {"head", &BiasParts::head}};

struct NormConfig {
  NormKind kind = NormKind::rmsnorm;
  double eps = 1e-5;
};

using PriorChoice = Choice<PriorInfo>;
using MixChoice = Choice<MixInfo>;
using ScaleChoice = Choice<ScaleInfo>;
using NormalizerChoice = Choice<NormalizerInfo>;

/// Whether the number of keys that a row keeps depends on its sequence's length, in which padding
/// would count.
inline bool counts_whole_sequence(const NormalizerChoice& choice) {
  if (!choice) return false;
  const NormalizerForm form = choice.info().form_of(choice.options);
  return form.kind == NormalizerKind::topk && form.keys.number == 0 && form.keys.of_sequence;
}

/// The priors of a model's layers. If there are several, none is of family embedding, which belongs
/// to no layer.
struct PriorConfig {
  /// Layer l has entry l % size. The size divides the number of layers.
  std::vector<PriorChoice> pattern;
  /// The mix of each of them; unset: no mix. Empty: no layer has one.
  std::vector<MixChoice> mixes;
  bool listed = false;  // configured as a list, possibly of one; for messages

  PriorConfig() = default;
  PriorConfig(PriorChoice of_all) : pattern{std::move(of_all)} {}  // for all layers
  explicit PriorConfig(std::vector<PriorChoice> by_layer) : pattern(std::move(by_layer)) {}

  const PriorChoice& of(int64_t layer) const {
    return pattern.at(static_cast<size_t>(layer) % pattern.size());
  }
  const MixChoice& mix_of(int64_t layer) const {
    static const MixChoice kNone;
    return mixes.empty() ? kNone : mixes.at(static_cast<size_t>(layer) % pattern.size());
  }
  /// What the mix of a layer, if any, may know of the model.
  ModelShape mix_shape(int64_t layer, ModelShape shape) const {
    shape.biased = of(layer).info().adds_bias();
    return shape;
  }
  MechanismParameters mix_parameters(int64_t layer, const ModelShape& shape) const {
    const MixChoice& mix = mix_of(layer);
    return mix ? mix.parameters(mix_shape(layer, shape)) : MechanismParameters();
  }
  /// Suffix of the config key for a layer's prior, for messages: "[1]"; empty if it has no list.
  std::string place(int64_t layer) const {
    const size_t i = static_cast<size_t>(layer) % pattern.size();
    return listed || pattern.size() > 1 ? "[" + std::to_string(i) + "]" : "";
  }
  /// "rope_local, dape over kerple", for messages.
  std::string names() const {
    std::string out;
    for (size_t i = 0; i < pattern.size(); ++i) {
      const MixChoice& mix = mix_of(static_cast<int64_t>(i));
      out += (i == 0 ? "" : ", ") + (mix ? mix.name() + " over " : "") + pattern[i].name();
    }
    return out;
  }
};

struct AttentionConfig {
  PriorConfig prior;            // default: nope
  ScaleChoice scale;            // default: none
  NormalizerChoice normalizer;  // default: softmax
  int64_t window = 0;  // keys visible iff i - j < window; 0: no window. Priors may override it
  bool document_mask = false;  // attention, n_i and positions restart at document starts
  // Whether rows see no keys after their own. false: rows see their whole document, and a window is
  // |i - j| < window
  bool causal = true;

  /// Maximum number of keys that a row of T tokens sees. `nearest`: a layer's window; 0: no window.
  int64_t most_keys(int64_t T, int64_t nearest) const {
    return nearest > 0 ? std::min(causal ? nearest : 2 * nearest - 1, T) : T;
  }
};

struct ModelConfig {
  ModelKind kind = ModelKind::decoder;
  int64_t vocab = 0;         // V
  int64_t classes = 0;       // O, columns of the logits; 0: V
  int64_t width = 0;         // C
  int64_t layers = 0;        // L
  int64_t heads = 0;         // H
  int64_t kv_heads = 0;      // K, divides H
  int64_t own_head_dim = 0;  // D; 0: C / H
  MlpConfig mlp;
  NormConfig norm;
  NormPosition norm_position = NormPosition::pre;
  bool embed_scale = false;  // token embeddings, not positions, times sqrt(C)
  bool tied = false;
  BiasParts bias;
  InitKind init = InitKind::gpt2;
  AttentionConfig attention;

  int64_t outputs() const { return classes > 0 ? classes : vocab; }                     // O
  int64_t head_dim() const { return own_head_dim > 0 ? own_head_dim : width / heads; }  // D
  /// What mechanisms may know of the model.
  ModelShape shape(int64_t sequence_length) const {
    ModelShape s = {layers, heads, head_dim(), width, sequence_length};
    s.causal = attention.causal;
    return s;
  }
};

}  // namespace bamtrain

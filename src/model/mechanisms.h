#pragma once
// Priors, mixes of heads, scale and normalizer of a model in the form that attention reads, and the
// way back from their gradients to the parameters: the parts of mechanism_part.h together.

#include <algorithm>
#include <memory>
#include <vector>

#include "model/mechanism_part.h"

namespace bamtrain {

/// The window of a layer: i - j < window for every visible key; 0: none.
int64_t layer_window(const ModelConfig& config, int64_t layer, int64_t training_length);

/// Whether the logit scale of a layer multiplies the prior's bias too.
bool scale_bias(const ModelConfig& config, int64_t layer);

/// The mechanisms of every layer.
class Mechanisms {
 public:
  /// `training_length` is T of training.
  Mechanisms(const ModelConfig& config, int64_t training_length, const ParameterLayout& layout,
             Backend& backend);
  Mechanisms(const Mechanisms&) = delete;
  Mechanisms& operator=(const Mechanisms&) = delete;

  /// T: the longest sequence, with what ModelUse::generation remembers of it.
  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use);
  /// Error (ExitCode::config) where the scale knows no rows of as many keys as T tokens may see, or
  /// random positions are fewer.
  void check_length(int64_t T) const;

  /// Forms tables from the master weights: once whenever they change. REQUIRES: planned and
  /// committed. The first call takes memory, the later ones do not.
  void refresh(const Tensor& master_weights);

  /// Sets bias, mix, scale and normalizer of `a` for a layer, from q, k (rotated where the prior
  /// rotates) and `first_key` (B, T) of `a`, the gates (B, T, ParameterLayout::gate_columns()) A,
  /// the positions (B, T) of queries in their documents, and the master weights of the last
  /// refresh.
  void attach(int64_t layer, Attention& a, const Tensor& gates, const Tensor& positions);
  /// Where the backward pass of attention writes for B sequences of T tokens; absent parts stay
  /// empty.
  void attach(int64_t layer, AttentionGradients& g, int64_t B, int64_t T) const;
  /// Writes dgates, and adds what the others of `g` give in this layer to the mechanisms'
  /// parameters. Positions as above.
  void backward(int64_t layer, const AttentionGradients& g, const Attention& a, const Tensor& gates,
                const Tensor& positions, const Tensor& dgates, const Tensor& gradients);

  /// Elements of the largest parameter of a mechanism in a layer.
  int64_t largest_parameter() const;
  /// What attention asks of the backend's scratch for any of them.
  void add_workspace(WorkspaceShape& w) const;
  /// Columns of gates that a layer uses, at most ParameterLayout::gate_columns().
  int64_t gates(int64_t layer) const;
  /// The windows that layers have, each once: i - j < window for every visible key; 0: no window.
  const std::vector<int64_t>& windows() const { return windows_; }
  /// Which of them a layer has.
  int64_t window(int64_t layer) const { return window_[static_cast<size_t>(layer)]; }
  /// Whether any layer's prior is of family F.
  template <class F>
  bool has() const {
    const auto& priors = config_.attention.prior.pattern;
    return std::any_of(priors.begin(), priors.end(),
                       [](const PriorChoice& p) { return p.info().template is<F>(); });
  }
  NormalizerKind normalizer() const {
    const NormalizerChoice& chosen = config_.attention.normalizer;
    return chosen ? chosen.info().kind : NormalizerKind::softmax;
  }
  /// What is random in the layers where something is, which is the same; nothing: none: in none.
  const Randomization& randomization() const { return randomization_; }
  /// How many draws (B, T) a batch has: of each layer, or one for all; 0: nothing is random.
  int64_t draws() const;
  /// Of the batch at hand: (draws(), B, T), where the random ones are distances; null: they count.
  void draw(const int32_t* distances, int64_t B, int64_t T);
  /// As MechanismPart's.
  void shift_cache(int64_t layer, int64_t from, int64_t count);
  Rotation rotation(int64_t layer) const;
  /// Fixed position embedding (T, C), where the prior has one without parameters, or empty.
  Tensor position_table() const;

 private:
  /// Calls f(part, rows) for every part, with its own columns of `gates`, which lie in the parts'
  /// order.
  template <class F>
  void for_parts(int64_t layer, const Tensor& gates, F&& f) const {
    int64_t column = 0;
    for (const auto& part : parts_) {
      const int64_t own = part->gates(layer);
      f(*part, own > 0 ? gates.slice(2, column, own) : Tensor());
      column += own;
    }
  }

  void check_random_length(int64_t T) const;

  ModelConfig config_;
  /// Priors' first, then mixes': a scale may read the logits of the attention that they make.
  std::vector<std::unique_ptr<MechanismPart>> parts_;
  Randomization randomization_;
  std::vector<int64_t> windows_, window_;  // the second: by layer, a number in the first
  bool constants_ready_ = false;
};

}  // namespace bamtrain

#pragma once
// Priors, mixes, scale and normalizer of a model: what attention reads of them, and their
// parameters' gradients. Combines the parts of mechanism_part.h.

#include <algorithm>
#include <memory>
#include <vector>

#include "model/mechanism_part.h"

namespace bamtrain {

/// The window of a layer: i - j < window for every visible key; 0: no window.
int64_t layer_window(const ModelConfig& config, int64_t layer, int64_t training_length);

/// Whether the logit scale of a layer also multiplies the prior's bias.
bool scale_bias(const ModelConfig& config, int64_t layer);

/// The mechanisms of every layer.
class Mechanisms {
 public:
  /// `training_length` is T of training.
  Mechanisms(const ModelConfig& config, int64_t training_length, const ParameterLayout& layout,
             Backend& backend);
  Mechanisms(const Mechanisms&) = delete;
  Mechanisms& operator=(const Mechanisms&) = delete;

  /// T: the longest sequence; with ModelUse::generation including the cached tokens.
  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use);
  /// Throws Error (ExitCode::config) if the scale does not support rows with as many keys as T
  /// tokens may see, or if there are fewer random positions.
  void check_length(int64_t T) const;

  /// Computes tables from the master weights. Call it after they change. REQUIRES: planned and
  /// committed. Only the first call allocates memory.
  void refresh(const Tensor& master_weights);

  /// Sets form, bias, mix, scale and alphas of `a` for a layer. Reads q, k (already rotated) and
  /// `first_key` (B, T) of `a`, the gates (B, T, ParameterLayout::gate_columns()) A, the positions
  /// (B, T) of queries in their documents, and the master weights of the last refresh.
  void attach(int64_t layer, Attention& a, const Tensor& gates, const Tensor& positions);
  /// Sets where the backward pass of attention writes for B sequences of T tokens. Tensors of
  /// missing parts stay empty.
  void attach(int64_t layer, AttentionGradients& g, int64_t B, int64_t T) const;
  /// Writes dgates, and adds the gradients of the mechanisms' parameters that follow from `g` in
  /// this layer to `gradients`. Positions as above.
  void backward(int64_t layer, const AttentionGradients& g, const Attention& a, const Tensor& gates,
                const Tensor& positions, const Tensor& dgates, const Tensor& gradients);

  /// Elements of the largest parameter that operations read as doubles (HostScratch).
  int64_t largest_parameter() const;
  /// The forms of the layers' attention.
  const std::vector<AttentionForm>& forms() const { return forms_; }
  /// Columns of gates that a layer uses, at most ParameterLayout::gate_columns().
  int64_t gates(int64_t layer) const;
  /// The distinct windows of the layers: i - j < window for every visible key; 0: no window.
  const std::vector<int64_t>& windows() const { return windows_; }
  /// Index in windows() of a layer's window.
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
  /// What is random, the same in all layers that randomize; empty: nothing.
  const Randomization& randomization() const { return randomization_; }
  /// Number of draws (B, T) for a batch: one per layer, or one for all; 0: nothing is random.
  int64_t draws() const;
  /// Sets random distances for the current batch: (draws(), B, T); null: distances count.
  void draw(const int32_t* distances, int64_t B, int64_t T);
  /// As MechanismPart's.
  void shift_cache(int64_t layer, int64_t from, int64_t count);
  Rotation rotation(int64_t layer) const;
  /// Fixed position embedding (T, C), if the prior has one without parameters; else empty.
  Tensor position_table() const;

 private:
  /// Calls f(part) for every part that a layer has.
  template <class F>
  void for_parts(int64_t layer, F&& f) const {
    for (const auto& part : parts_) {
      if (part->has(layer)) f(*part);
    }
  }
  /// Calls f(part, gates) for them, with the part's columns of `gates`, which are in the parts'
  /// order.
  template <class F>
  void with_gates(int64_t layer, const Tensor& gates, F&& f) const {
    int64_t column = 0;
    for_parts(layer, [&](MechanismPart& part) {
      const int64_t own = part.gates(layer);
      f(part, own > 0 ? gates.slice(2, column, own) : Tensor());
      column += own;
    });
  }

  void check_random_length(int64_t T) const;

  ModelConfig config_;
  /// Priors first, then mixes: a scale may read the logits of the resulting attention.
  std::vector<std::unique_ptr<MechanismPart>> parts_;
  Randomization randomization_;
  std::vector<AttentionForm> forms_;       // of the layers
  std::vector<int64_t> windows_, window_;  // window_: by layer, an index in windows_
  bool constants_ready_ = false;
};

}  // namespace bamtrain

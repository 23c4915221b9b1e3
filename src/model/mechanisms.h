#pragma once
// Priors and scale of a model in the form that attention reads: tables over (head, distance),
// scales over rows, and the way back from their gradients to the parameters.

#include <algorithm>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/ops.h"

namespace bamtrain {

/// The window of a layer: i - j < window for every visible key; 0: none.
int64_t layer_window(const ModelConfig& config, int64_t layer, int64_t training_length);

/// Whether the logit scale of a layer multiplies the prior's bias too.
bool scale_bias(const ModelConfig& config, int64_t layer);

/// What queries and keys are rotated by, (T, D/2) P; empty: they are not.
struct Rotation {
  Tensor cosine, sine;
  bool randomized = false;  // in training, by random positions
};

/// The prior and the scale of every layer.
class Mechanisms {
 public:
  /// `training_length` is T of training.
  Mechanisms(const ModelConfig& config, int64_t training_length, const ParameterLayout& layout,
             Backend& backend);

  /// T: the longest sequence, with what ModelUse::generation remembers of it.
  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use);
  /// Error (ExitCode::config) where the scale knows no rows of as many keys as T tokens may see.
  void check_length(int64_t T) const;

  /// Forms tables from the masters: once whenever they change. REQUIRES: planned and committed.
  /// The first call takes memory, the later ones do not.
  void refresh(const Tensor& masters);

  /// Sets the prior's and the scale's part of `a` for a layer, from q, k (rotated where the prior
  /// rotates) and `first_key` (B, T) of `a`, the gates (B, T, ParameterLayout::gate_columns()) A,
  /// the positions (B, T) of queries in their documents, and the masters of the last refresh.
  void attach(int64_t layer, Attention& a, const Tensor& gates, const Tensor& positions);
  /// Where the backward pass of attention writes for B sequences of T tokens; absent parts stay
  /// empty.
  void attach(int64_t layer, AttentionGradients& g, int64_t B, int64_t T) const;
  /// Writes dgates, and adds what the others of `g` give in this layer to the mechanisms'
  /// parameters.
  void backward(int64_t layer, const AttentionGradients& g, const Attention& a, const Tensor& gates,
                const Tensor& dgates, const Tensor& gradients);

  /// Elements of the largest parameter of prior and scale in a layer.
  int64_t largest_parameter() const;
  /// Columns of gates that a layer uses, at most ParameterLayout::gate_columns().
  int64_t gates(int64_t layer) const { return prior_gates(layer) + scale_gates(); }
  /// The windows that layers have, each once: i - j < window for every visible key; 0: no window.
  const std::vector<int64_t>& windows() const { return windows_; }
  /// Which of them a layer has.
  int64_t window(int64_t layer) const { return prior(layer).window; }
  /// Whether a layer's prior is of family F.
  template <class F>
  bool has() const {
    return parts<F>() > 0;
  }
  /// RotaryFamily::randomized_positions of the layers that have any; 0: none has.
  int64_t randomized_positions() const { return randomized_positions_; }
  Rotation rotation(int64_t layer) const;
  const NormalizerForm& normalizer() const { return normalizer_; }
  bool sinusoidal() const {
    const auto* const embedding = prior(0).info.as<EmbeddingFamily>();
    return embedding && embedding->value;
  }
  /// Fixed position embedding (T, C), where the prior has one without parameters.
  const Tensor& position_table() const { return position_table_; }

 private:
  /// A mechanism's parameters in one layer but its gates, which are rows of the product of q, k, v.
  using Parameters = std::vector<const Parameter*>;

  /// A layer's prior.
  struct LayerPrior {
    const PriorInfo& info;
    const Options& options;
    int form = 0;
    double gain = 1;
    int64_t window = 0;  // number in windows_
    int64_t first_scaled_head = 0;
    bool scale_bias = false;
    bool randomized = false;
    double fire_length = 0;
    double content_scale = 0;
    /// Where its tables, segments or rotation lie among those of its family. Layers of one prior
    /// without parameters of their own share them.
    int64_t part = 0;
    bool owner = true;  // the first of the layers that share it
  };

  void add_prior(int64_t layer, const ModelShape& shape, const ParameterLayout& layout);
  const LayerPrior& prior(int64_t layer) const { return priors_[static_cast<size_t>(layer)]; }
  /// How many parts the layers of family F have.
  template <class F>
  int64_t parts() const {
    return std::count_if(priors_.begin(), priors_.end(),
                         [](const LayerPrior& p) { return p.owner && p.info.template is<F>(); });
  }

  Parameters find(const MechanismParameters& list, const char* kind, int64_t layer,
                  const ParameterLayout& layout) const;
  /// Parameters of a layer as parts of the masters, good until the next call.
  std::span<const Tensor> theta(const std::vector<Parameters>& of, int64_t layer);
  /// Likewise of the gradients; those of parameters that are not trained are empty.
  std::span<const Tensor> dtheta(const std::vector<Parameters>& of, int64_t layer,
                                 const Tensor& gradients);
  void upload_constants();
  /// Error (ExitCode::config) where the backend or the use has no such normalizer.
  void check_normalizer(ModelUse use) const;
  /// Columns of gates: the prior's, one per head, then the scale's, two per head.
  int64_t prior_gates(int64_t layer) const {
    return prior(layer).info.is<SumsFamily>() ? config_.heads : 0;
  }
  int64_t scale_gates() const { return scale_.is<AdaptiveKind>() ? 2 * config_.heads : 0; }
  Tensor of_prior(int64_t layer, const Tensor& gates) const {
    return gates.slice(2, 0, prior_gates(layer));
  }
  Tensor of_scale(int64_t layer, const Tensor& gates) const {
    return gates.slice(2, prior_gates(layer), scale_gates());
  }
  /// scale (B, H, T) = t. `a` has no scale yet.
  void form_scale(int64_t layer, const Tensor& scale, const Attention& a, const Tensor& gates);
  Tensor sums_bias(int64_t layer, const Tensor& flat) const;
  /// Sets a.sums, those of past tokens as an earlier call left them.
  void form_sums(int64_t layer, Attention& a, const Tensor& gates);
  Tensor alphas_of(int64_t layer) const;
  Tensor table_of(const LayerPrior& p) const;
  FireTables fire_of(const LayerPrior& p) const;
  PriorUse prior_use(int64_t layer) const {
    return {prior(layer).info, prior(layer).form, prior(layer).gain};
  }
  ScaleUse scale_use(int64_t layer) const {
    return {scale_, scale_constants_, prior(layer).first_scaled_head};
  }

  ModelConfig config_;
  Backend& backend_;
  const ScaleInfo& scale_;
  std::vector<LayerPrior> priors_;                               // by layer
  std::vector<Parameters> of_prior_, of_scale_, of_normalizer_;  // by layer
  int64_t training_length_;
  std::vector<int64_t> windows_;
  int64_t randomized_positions_ = 0;
  ScaleConstants scale_constants_;
  NormalizerForm normalizer_;
  bool constants_ready_ = false;
  int64_t T_ = 0;
  bool remembers_ = false;              // generation: the sums of past tokens
  std::vector<Tensor> theta_, dtheta_;  // of the operation at hand

  Tensor masters_;              // of the last refresh
  Tensor tables_;               // (parts, H, T) P
  Tensor scale_rows_;           // (B, H, T) P: t of the layer at hand
  Tensor dtable_;               // (H, T) P
  Tensor dscale_;               // (B, H, T) P
  Tensor sums_;                 // (B, H, T) f64: S of the layer at hand; generation: (layers, H, T)
  Tensor dsums_;                // (B, H, T) P
  FireTables fire_;             // (parts, ...) each
  Tensor dfire_;                // (H, kFireSegments, 2) f64
  Tensor dfire_u_, dfire_psi_;  // (B, H, T) P
  Tensor alphas_;               // (layers, H) P
  Tensor dalpha_;               // (B, H, T) P
  Tensor cosine_, sine_;        // (parts, T, D/2) P; in training with random positions as many rows
  Tensor position_table_;       // (T, C) P
};

}  // namespace bamtrain

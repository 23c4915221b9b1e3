#pragma once
// Prior and scale of a model in the form that attention reads: tables over (head, distance), scales
// over rows, and the way back from their gradients to the parameters.

#include <span>
#include <vector>

#include "core/arena.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/ops.h"
#include "priors/registry.h"
#include "scales/scale.h"

namespace bamtrain {

/// The prior and the scale of every layer.
class Mechanisms {
 public:
  /// `training_length` is T of training.
  Mechanisms(const ModelConfig& config, int64_t training_length, const ParameterLayout& layout,
             Backend& backend);

  void plan(Arena& arena, int64_t B, int64_t T, bool training);

  /// Forms tables from the masters: once whenever they change. REQUIRES: planned and committed.
  /// The first call takes memory, the later ones do not.
  void refresh(const Tensor& masters);

  /// Sets the prior's and the scale's part of `a` for a layer, from `first_key` (B, T) of `a`, the
  /// gates (B, T, ParameterLayout::gate_columns()) A, and the masters of the last refresh.
  void attach(int64_t layer, Attention& a, const Tensor& gates);
  /// Where the backward pass of attention writes for B sequences of T tokens; absent parts stay
  /// empty.
  void attach(AttentionGradients& g, int64_t B, int64_t T) const;
  /// Writes dgates, and adds what the others of `g` give in this layer to the mechanisms'
  /// parameters.
  void backward(int64_t layer, const AttentionGradients& g, const Attention& a, const Tensor& gates,
                const Tensor& dgates, const Tensor& gradients);

  /// Elements of the largest parameter of prior and scale in a layer.
  int64_t largest_parameter() const;
  /// Columns of gates in use, at most ParameterLayout::gate_columns().
  int64_t gates() const { return prior_.family == Family::sums ? config_.heads : 0; }
  /// i - j < window for every visible key; 0: no window.
  int64_t window() const { return window_; }
  Family family() const { return prior_.family; }
  bool rotary() const { return prior_.family == Family::rotary; }
  const Tensor& cosine() const { return cosine_; }
  const Tensor& sine() const { return sine_; }
  bool sinusoidal() const { return prior_.embedding != nullptr; }
  /// Fixed position embedding (T, C), where the prior has one without parameters.
  const Tensor& position_table() const { return position_table_; }

 private:
  /// A mechanism's parameters in one layer.
  using Parameters = std::vector<const Parameter*>;

  std::vector<Parameters> find(const std::vector<MechanismParameter>& list, const char* kind,
                               const ParameterLayout& layout) const;
  /// Parameters of a layer as parts of the masters, good until the next call.
  std::span<const Tensor> theta(const std::vector<Parameters>& of, int64_t layer);
  /// Likewise of the gradients; those of parameters that are not trained are empty.
  std::span<const Tensor> dtheta(const std::vector<Parameters>& of, int64_t layer,
                                 const Tensor& gradients);
  void upload_constants();
  /// The prior's own gates, a column per head.
  Tensor of_prior(const Tensor& gates) const { return gates.slice(2, 0, config_.heads); }
  Tensor sums_bias(int64_t layer, const Tensor& flat) const;
  FireBias fire_of(int64_t layer) const;
  PriorUse prior_use() const { return {prior_, prior_form_}; }
  ScaleUse scale_use() const { return {scale_, scale_constants_, first_scaled_head_}; }

  ModelConfig config_;
  Backend& backend_;
  const PriorInfo& prior_;
  const ScaleInfo& scale_;
  std::vector<Parameters> of_prior_, of_scale_;  // by layer
  int64_t training_length_;
  int64_t window_ = 0;
  int prior_form_ = 0;
  ScaleConstants scale_constants_;
  int64_t first_scaled_head_ = 0;
  bool scale_bias_ = false;
  bool shared_table_ = false;  // one table for all layers
  bool constants_ready_ = false;
  int64_t T_ = 0;
  std::vector<Tensor> theta_, dtheta_;  // of the operation at hand

  Tensor masters_;      // of the last refresh
  Tensor tables_;       // (L or 1, H, T) P
  Tensor scale_rows_;   // (B, H, T) P: t of the layer at hand
  Tensor dtable_;       // (H, T) P
  Tensor dscale_;       // (B, H, T) P
  Tensor sums_;         // (B, H, T) f64: S of the layer at hand
  Tensor dsums_key_;    // (B, H, T) P
  Tensor dsums_query_;  // (B, H, T) P
  FireBias fire_;       // of all layers: (L, ...) each
  double fire_length_ = 0;
  Tensor dfire_;                // (H, kFireSegments, 2) f64
  Tensor dfire_u_, dfire_psi_;  // (B, H, T) P
  Tensor cosine_, sine_;        // (T, D/2) P
  Tensor position_table_;       // (T, C) P
};

}  // namespace bamtrain

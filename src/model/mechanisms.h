#pragma once
// Prior and scale of a model in the form that attention reads: tables over (head, distance) and
// (head, visible keys), and the way back from their gradients to the parameters.

#include <vector>

#include "core/arena.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/ops.h"
#include "priors/registry.h"
#include "scales/scale.h"

namespace bamtrain {

/// One layer's parameters of a mechanism as doubles, and their gradients on the way back. All
/// memory is taken at construction.
class MechanismValues {
 public:
  MechanismValues(const ParameterLayout& layout, const std::vector<MechanismParameter>& list,
                  const char* kind, int64_t layer);
  MechanismValues(const MechanismValues&) = delete;
  MechanismValues(MechanismValues&&) = default;

  /// Takes the values from a flat buffer of masters and clears the gradients.
  void read(const Tensor& masters);

  bool empty() const { return parameters_.empty(); }
  const double* const* theta() const { return pointers_.data(); }
  double* const* gradients() { return gradient_pointers_.data(); }
  /// Adds the gathered gradients of trained parameters to a flat buffer of gradients.
  void add_gradients(const Tensor& flat) const;

 private:
  std::vector<const Parameter*> parameters_;
  std::vector<std::vector<double>> values_, gradients_;
  std::vector<const double*> pointers_;
  std::vector<double*> gradient_pointers_;
};

/// The prior and the scale of every layer.
class Mechanisms {
 public:
  Mechanisms(const ModelConfig& config, const ParameterLayout& layout, Dtype parameter_dtype);
  Mechanisms(const Mechanisms&) = delete;
  Mechanisms& operator=(const Mechanisms&) = delete;

  void plan(Arena& arena, int64_t B, int64_t T, bool training);

  /// Forms tables from the masters: once whenever they change. REQUIRES: planned and committed.
  /// The first call takes memory, the later ones do not.
  void refresh(const Tensor& masters);

  /// Sets the prior's and the scale's part of `a` for a layer. `first_key` (B, T) must be set.
  void attach(int64_t layer, Attention& a);
  /// Where the backward pass of attention writes; absent parts stay empty.
  void attach(AttentionGradients& g) const;
  /// Adds what dtable and dscale of this layer give to the mechanisms' parameters.
  void backward(int64_t layer, const AttentionGradients& g, const Attention& a,
                const Tensor& masters, const Tensor& gradients);

  bool rotary() const { return prior_.family == Family::rotary; }
  const Tensor& cosine() const { return cosine_; }
  const Tensor& sine() const { return sine_; }
  bool sinusoidal() const { return prior_.embedding != nullptr; }
  /// Fixed position embedding (T, C), where the prior has one without parameters.
  const Tensor& position_table() const { return position_table_; }

 private:
  MechanismValues& prior_values(int64_t layer);
  void form_fixed_tables();
  void backward_prior(MechanismValues& values, const Tensor& dtable);
  void backward_scale(MechanismValues& values, const Tensor& dscale, const Attention& a);

  ModelConfig config_;
  const PriorInfo& prior_;
  const ScaleInfo& scale_;
  Dtype dtype_;
  bool scale_bias_ = false;
  bool fixed_tables_formed_ = false;
  std::vector<MechanismValues> prior_values_;  // by layer, or one where all layers share theirs
  std::vector<MechanismValues> scale_values_;  // by layer
  int64_t T_ = 0;

  Tensor tables_;           // (L or 1, H, T) P
  Tensor exact_;            // (layers at a time, H, T) f64: tables before rounding
  Tensor scale_by_length_;  // (L, H, T + 1) P: t at n visible keys
  Tensor scale_rows_;       // (B, H, T) P: t of the layer at hand
  Tensor dtable_;           // (H, T) P
  Tensor dscale_;           // (B, H, T) P
  Tensor dscale_sums_;      // (H, T + 1) f64: dt by the number of visible keys
  Tensor cosine_, sine_;    // (T, D/2) P
  Tensor position_table_;   // (T, C) P
};

}  // namespace bamtrain

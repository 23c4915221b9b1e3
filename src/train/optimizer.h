#pragma once
// The optimizer of a run: which rule applies to which parameter, the optimizer state, clipping.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/parameters.h"
#include "ops/ops.h"
#include "train/owned_range.h"
#include "train/train_config.h"

namespace bamtrain {

/// The group's name in optimizer.lr_multipliers and event files; empty if it has none. In
/// lr_multipliers, a mix of heads (group prior) also has the name "mix".
std::string group_name(ParameterGroup group);

class Optimizer {
 public:
  /// Throws Error (ExitCode::config) if a name in lr_multipliers matches no trained parameter.
  Optimizer(const OptimizerConfig& config, const ParameterLayout& layout, Backend& backend);

  /// Plans `moments` elements of each moment. `owned`: what step() updates, in memory order.
  void plan(Arena& arena, const std::vector<OwnedRange>& owned, int64_t moments);

  /// Sets the inputs of the next step(). `step` counts from 1; `lr` is the scheduled rate. The
  /// gradients and their norm are still to be multiplied by `scale`.
  void prepare(int64_t step, double lr, double scale);
  /// Begins a step: squared_norm (1) f64 is that of the gradients, for clipping. From the first
  /// non-finite norm on, steps change nothing. A backend may capture this and update()
  /// (Backend::run_captured).
  void clip(Tensor squared_norm);
  /// Updates the trained parameters that are owned and in one of `ranges`, each of which has all of
  /// an owned range or nothing: in master_weights as OwnedRange says, and in their `rounded` copy
  /// (elements), which may be empty. gradients (elements) P.
  void update(std::span<const FlatRange> ranges, Tensor master_weights, Tensor rounded,
              Tensor gradients);

  const Tensor& first_moments() const { return m_; }
  const Tensor& second_moments() const { return v_; }

 private:
  /// Contiguous parameters that one operation updates.
  struct ParameterRange {
    int64_t offset = 0, size = 0;  // in the flat buffer
    double multiplier = 1;         // factor of the learning rate
    double weight_decay = 0;
    double minimum = -INFINITY, maximum = INFINITY;  // limits of a weight
  };

  /// The part of one of ranges_ that is owned.
  struct Update {
    size_t range;
    OwnedRange owned;
  };

  double multiplier(const Parameter& p) const;
  OptimizerHyperparameters rule(const ParameterRange& run) const;

  OptimizerConfig config_;
  const ParameterLayout& layout_;
  Backend& backend_;
  std::vector<ParameterRange> ranges_;  // all trained parameters, in memory order
  std::vector<Update> updates_;
  Tensor m_, v_;        // (moments) P
  Tensor clip_factor_;  // (1) f64
  // (1 + runs * kOptimizerFactors) f64, for the next step: the scale of the gradients, then the
  // factors of each range
  Tensor factors_;
  std::vector<double> host_factors_;
};

}  // namespace bamtrain

#pragma once
// The optimizer of a run: which rule applies to which parameter, the moments, clipping.

#include <cstdint>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/parameters.h"
#include "ops/ops.h"
#include "train/train_config.h"

namespace bamtrain {

/// The group's name in optimizer.lr_multipliers and event files; empty: it has none. A mix of
/// heads, in group prior, has the name "mix" there besides.
std::string group_name(ParameterGroup group);

class Optimizer {
 public:
  /// Error (ExitCode::config) for an lr_multipliers name that no trained parameter answers to.
  Optimizer(const OptimizerConfig& config, const ParameterLayout& layout, Backend& backend);

  void plan(Arena& arena);

  /// What the next step() goes by. `step` counts from 1; `lr` is the scheduled rate; the gradients,
  /// and with them their norm, are yet to be multiplied by `scale`.
  void prepare(int64_t step, double lr, double scale);
  /// One update of all trained parameters, and of their `rounded` copy, which may be empty.
  /// squared_norm (1) f64: that of the gradients, for clipping. From the first norm that is not
  /// finite on, no step changes anything. A backend may record it (Backend::repeat).
  void step(Tensor squared_norm, Tensor master_weights, Tensor rounded, Tensor gradients);

  const Tensor& first_moments() const { return m_; }
  const Tensor& second_moments() const { return v_; }

 private:
  /// Contiguous parameters that one operation updates.
  struct ParameterRange {
    int64_t offset = 0, size = 0;  // in the flat buffer
    double multiplier = 1;         // on the learning rate
    double weight_decay = 0;
    double minimum = -INFINITY, maximum = INFINITY;  // of a weight
  };

  double multiplier(const Parameter& p) const;
  OptimizerHyperparameters rule(const ParameterRange& run) const;

  OptimizerConfig config_;
  const ParameterLayout& layout_;
  Backend& backend_;
  std::vector<ParameterRange> ranges_;  // all trained parameters, in their order
  Tensor m_, v_;                        // (elements) P
  Tensor clip_factor_;                  // (1) f64
  // (1 + runs * kOptimizerFactors) f64, of the next step: the gradients' scale, then the factors of
  // each run
  Tensor factors_;
  std::vector<double> host_factors_;
};

}  // namespace bamtrain

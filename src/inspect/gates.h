#pragma once
// Numbers that mechanisms compute from a token: the parts of attention that depend directly on the
// context.

#include <vector>

#include "inspect/layer_view.h"
#include "model/model_config.h"
#include "ops/attention.h"

namespace bamtrain {

/// For one layer and sequence of T tokens:
///   adaptive  beta and gamma of t = delta + beta log(n + 1)^gamma (scales/adaptive.h)
///   cable     u, the increment of its sums (priors/sums.h)
/// `a`: attention's inputs; gates (1, T, ParameterLayout::gate_columns()) in any dtype; master
/// weights f32.
std::vector<GateRows> gate_rows(const ModelConfig& config, int64_t training_length, int64_t layer,
                                const Attention& a, const Tensor& gates,
                                const Tensor& master_weights);

}  // namespace bamtrain

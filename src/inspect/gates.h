#pragma once
// Numbers that mechanisms make of a token: what of attention depends on the context by itself.

#include <vector>

#include "inspect/layer_view.h"
#include "model/model_config.h"
#include "ops/attention.h"

namespace bamtrain {

/// Of one layer and sequence, for T tokens:
///   adaptive  beta and gamma of t = delta + beta log(n + 1)^gamma (scales/adaptive.h)
///   cable     u, by which its sums grow (priors/sums.h)
/// `a` as attention read it; gates (1, T, ParameterLayout::gate_columns()) in any dtype; master
/// weights f32.
std::vector<GateRows> gate_rows(const ModelConfig& config, int64_t training_length, int64_t layer,
                                const Attention& a, const Tensor& gates,
                                const Tensor& master_weights);

}  // namespace bamtrain

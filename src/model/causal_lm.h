#pragma once
// Whether a model is a causal language model, as perplexity, generation and export require.

#include "model/model_config.h"

namespace bamtrain {

/// Error (ExitCode::config) for a model that is no decoder, whose classes are no ids of its
/// vocabulary, whose positions are drawn in evaluation, or which sees the tokens that it is to
/// predict.
void check_causal_lm(const ModelConfig& config);

}  // namespace bamtrain

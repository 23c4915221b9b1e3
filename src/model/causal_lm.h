#pragma once
// Checks that a model is a causal language model, as perplexity, generation and export require.

#include "model/model_config.h"

namespace bamtrain {

/// Throws Error (ExitCode::config) if the model is not a decoder, its classes are not ids of its
/// vocabulary, its positions are drawn in evaluation, or it sees the tokens that it has to predict.
void check_causal_lm(const ModelConfig& config);

}  // namespace bamtrain

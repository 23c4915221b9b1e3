#pragma once
// Whether a model continues texts: what perplexity, generation and export ask of one.

#include "model/model_config.h"

namespace bamtrain {

/// Error (ExitCode::config) for a model that is no decoder, whose classes are no ids of its
/// vocabulary, whose positions are drawn in evaluation, or which sees the tokens that it is to
/// predict.
void check_text_model(const ModelConfig& config);

}  // namespace bamtrain

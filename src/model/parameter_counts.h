#pragma once
// Parameter counts by part of a model.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/parameters.h"

namespace bamtrain {

/// Number of parameters of each part: embedding, attention, mlp, norms, prior (with mix), scale,
/// normalizer, head, in this order and without empty parts. Biases count with their matrices, gates
/// with their mechanism, a tied head with the embedding.
std::vector<std::pair<std::string, int64_t>> parameter_counts(const ParameterLayout& layout);

/// The total of all parts.
int64_t count_parameters(const ParameterLayout& layout);

/// "33568 parameters: embedding 13504, attention 24576, norms 320".
std::string describe_parameters(const ParameterLayout& layout);

}  // namespace bamtrain

#pragma once
// How many parameters each part of a model has.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/parameters.h"

namespace bamtrain {

/// How many parameters each part of the model has: embedding, attention, mlp, norms, prior (with
/// what mixes heads), scale, normalizer, head, in this order and without those that have none.
/// Biases count with their matrices, gates with their mechanism, a tied head with the embedding.
std::vector<std::pair<std::string, int64_t>> parameter_counts(const ParameterLayout& layout);

/// Of all parts together.
int64_t count_parameters(const ParameterLayout& layout);

/// "33568 parameters: embedding 13504, attention 24576, norms 320".
std::string describe_parameters(const ParameterLayout& layout);

}  // namespace bamtrain

#pragma once
// Perplexity against length, for people at a terminal.

#include <nlohmann/json_fwd.hpp>

namespace bamtrain {

/// Prints what perplexity_against_length gave of one data set, and what its errors are.
void print_perplexities(const nlohmann::ordered_json& result);

/// Prints what a paper's protocol sets (protocol_settings), in the words of the options.
void print_protocol(const nlohmann::ordered_json& settings);

}  // namespace bamtrain

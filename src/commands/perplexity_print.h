#pragma once
// Prints perplexity against length to a terminal.

#include <nlohmann/json_fwd.hpp>

namespace bamtrain {

/// Prints the result of perplexity_against_length for one data set, and explains its errors.
void print_perplexities(const nlohmann::ordered_json& result);

/// Prints what a paper's protocol sets (protocol_settings), as command-line options.
void print_protocol(const nlohmann::ordered_json& settings);

}  // namespace bamtrain

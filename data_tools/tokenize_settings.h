#pragma once
// Settings that determine the output of `bamdata tokenize`, under the command line's names.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "data_tools/tokenize.h"

namespace bamtrain {

/// The name of the tokenizer's file, among the settings. Older journals lack it.
inline constexpr const char* kTokenizerName = "--tokenizer name";

/// Options that the output depends on, in the order of comparison.
nlohmann::ordered_json settings_of(const TokenizeOptions& options, const Tokenizer& tokenizer);

/// Adds the number of inputs, and name, size and time of each. Returns false if one is not a file:
/// it could not be read again.
bool add_inputs(const std::vector<std::string>& paths, nlohmann::ordered_json* settings);

/// The inputs of a part: those whose middle byte, counted over all inputs in order, is in that part
/// of all bytes. Throws Error (usage) if an input is not a file, or a part would be empty.
std::vector<std::string> inputs_of_part(const std::vector<std::string>& paths,
                                        const InputPart& part);

/// SHA-256 over base names and sizes: equal for parts made from the same files. REQUIRES: files.
std::string digest_of_inputs(const std::vector<std::string>& paths);

}  // namespace bamtrain

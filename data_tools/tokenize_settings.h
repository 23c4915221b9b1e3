#pragma once
// What the output of `bamdata tokenize` depends on, by the names of the command line.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data_tools/tokenize.h"

namespace bamtrain {

/// Options that the tokens depend on, in the order in which they are compared.
nlohmann::ordered_json settings_of(const TokenizeOptions& options,
                                   const std::string& tokenizer_sha256);

/// Adds what the inputs are: their number, and name, size and time of each. False where one is no
/// file: nobody could read it again.
bool add_inputs(const std::vector<std::string>& paths, nlohmann::ordered_json* settings);

/// The inputs of a part: those whose middle, by bytes and in their order, lies in that part of all
/// bytes. Error (usage) where an input is no file, or a part would be without one.
std::vector<std::string> inputs_of_part(const std::vector<std::string>& paths,
                                        const InputPart& part);

/// SHA-256 over names, without their folders, and sizes: the same where parts were made of the same
/// files. REQUIRES: files.
std::string digest_of_inputs(const std::vector<std::string>& paths);

}  // namespace bamtrain

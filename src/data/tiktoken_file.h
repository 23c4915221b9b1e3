#pragma once
// Byte-level BPEs as tiktoken keeps them: a token's bytes in base64 and its rank a line; and
// Mistral's tekken.json, the same in JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/byte_pair_definition.h"

namespace bamtrain {

/// Whether the bytes begin as a file of ranks does.
bool begins_like_ranks(std::string_view bytes);

/// The file says neither how text is cut nor which special tokens there are, so it is told by its
/// hash: r50k_base, p50k_base, cl100k_base, o200k_base (as in tiktoken 0.14), and Llama 3's
/// tokenizer.model. Error (data) at `where` for any other, and for damaged ones.
BytePairDefinition read_tiktoken_file(std::string_view bytes, const std::string& where);

/// tekken.json: ids of ranks behind those of special tokens. Error (data) at `where`.
BytePairDefinition read_tekken(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

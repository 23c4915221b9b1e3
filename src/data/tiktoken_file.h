#pragma once
// Reads byte-level BPEs of tiktoken, one token per line as base64 and rank, and Mistral's
// tekken.json, the same in JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/byte_pair_definition.h"

namespace bamtrain {

/// Whether the bytes begin like a file of ranks.
bool begins_like_ranks(std::string_view bytes);

/// The file contains neither the split pattern nor the special tokens, so known files are
/// recognized by hash: r50k_base, p50k_base, cl100k_base, o200k_base (as in tiktoken 0.14), and
/// Llama 3's tokenizer.model. Throws Error (data) at `where` for any other and for damaged ones.
BytePairDefinition read_tiktoken_file(std::string_view bytes, const std::string& where);

/// tekken.json: the ids of ranks follow those of special tokens. Throws Error (data) at `where`.
BytePairDefinition read_tekken(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

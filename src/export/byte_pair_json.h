#pragma once
// Converts a byte-level BPE to tokenizer.json of Hugging Face's tokenizers library.

#include <nlohmann/json_fwd.hpp>

#include "data/tokenizer.h"

namespace bamtrain {

/// Gives the same ids for every UTF-8 text, whatever file format the tokenizer was read from.
/// tiktoken's ranks become a list of merges; merges of one rank are adjacent. REQUIRES:
/// tokenizer.byte_pairs().
nlohmann::ordered_json byte_pair_json(const Tokenizer& tokenizer, bool adds_bos);

}  // namespace bamtrain

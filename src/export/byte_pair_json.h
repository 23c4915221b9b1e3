#pragma once
// A byte-level BPE as tokenizer.json of Hugging Face's tokenizers library.

#include <nlohmann/json_fwd.hpp>

#include "data/tokenizer.h"

namespace bamtrain {

/// The same ids for every text in UTF-8, from whatever file the tokenizer was read: tiktoken's
/// ranks become a list of merges, those of one rank one after the other. REQUIRES:
/// tokenizer.byte_pairs().
nlohmann::ordered_json byte_pair_json(const Tokenizer& tokenizer, bool adds_bos);

}  // namespace bamtrain

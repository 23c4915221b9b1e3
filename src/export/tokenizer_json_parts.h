#pragma once
// The parts that every tokenizer.json has.

#include <nlohmann/json_fwd.hpp>

#include "data/tokenizer.h"

namespace bamtrain {

/// "added_tokens": tokens that encode no text, and tokens that are matched in the text first.
nlohmann::ordered_json added_tokens_json(const Tokenizer& tokenizer);

/// "post_processor": adds BOS, if `adds_bos`, before each text of a single text or a pair.
nlohmann::ordered_json template_json(const Tokenizer& tokenizer, bool adds_bos);

/// Appends a member without checking whether the key exists.
void append_member(nlohmann::ordered_json* object, const std::string& key,
                   nlohmann::ordered_json value);

}  // namespace bamtrain

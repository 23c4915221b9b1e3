#pragma once
// What every tokenizer.json has, whatever the tokenizer.

#include <nlohmann/json_fwd.hpp>

#include "data/tokenizer.h"

namespace bamtrain {

/// "added_tokens": those that encode no text, and those that are taken out of it first.
nlohmann::ordered_json added_tokens_json(const Tokenizer& tokenizer);

/// "post_processor": BOS, where `adds_bos`, before every text of one or two.
nlohmann::ordered_json template_json(const Tokenizer& tokenizer, bool adds_bos);

/// Appends without looking for the key in what is there already.
void append_member(nlohmann::ordered_json* object, const std::string& key,
                   nlohmann::ordered_json value);

}  // namespace bamtrain

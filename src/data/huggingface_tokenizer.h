#pragma once
// tokenizer.json of Hugging Face's tokenizers, of a byte-level BPE: GPT-2's, GPT-NeoX's, Llama-3's,
// Qwen's, DeepSeek's, SmolLM's and what the library trains of that kind.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/byte_pair_definition.h"

namespace bamtrain {

/// Error (data) at `where` for every part that this project does not do, by its name: models that
/// are no BPE of bytes, normalizers but NFC, cuts but by Split (Isolated), Digits and ByteLevel,
/// added tokens that depend on what is beside them.
///
/// BOS is what the file's template puts before a text, else the special token <|begin_of_text|>,
/// <s>, <bos>, <|startoftext|> or <|endoftext|>, the first that is there; EOS <|end_of_text|>,
/// </s>, <eos> or <|endoftext|>; padding <pad>, [PAD] or <|pad|>.
BytePairDefinition read_huggingface_tokenizer(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

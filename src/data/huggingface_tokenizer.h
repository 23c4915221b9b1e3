#pragma once
// Reads tokenizer.json of Hugging Face's tokenizers for byte-level BPEs: those of GPT-2, GPT-NeoX,
// Llama-3, Qwen, DeepSeek and SmolLM, and others of this kind that the library trains.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/byte_pair_definition.h"

namespace bamtrain {

/// Throws Error (data) at `where` for each unsupported part, by name: models other than byte-level
/// BPE, normalizers other than NFC, pre-tokenizers other than Split (Isolated), Digits and
/// ByteLevel, and added tokens that depend on adjacent text.
///
/// BOS is the token that the file's template puts before a text. Without one, it is the first
/// present of the special tokens <|begin_of_text|>, <s>, <bos>, <|startoftext|> and <|endoftext|>.
/// EOS is the first of <|end_of_text|>, </s>, <eos> and <|endoftext|>; padding of <pad>, [PAD] and
/// <|pad|>.
BytePairDefinition read_huggingface_tokenizer(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

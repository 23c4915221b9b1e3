#pragma once
// What a SentencePiece model says of itself, read from its bytes: the library does not tell.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bamtrain {

/// What decides how text is encoded, from the model's messages: field numbers and defaults of
/// sentencepiece_model.proto.
struct SentencepieceSpecification {
  uint64_t model_type = 1;  // 2: BPE
  bool byte_fallback = false;
  bool space_as_suffix = false;
  bool identity = true;  // no table of character replacements, in either direction
  bool dummy_prefix = true;
  bool squeezes_spaces = true;
  bool escapes_spaces = true;
  std::vector<int32_t> user_defined = {};  // ids of pieces that are taken out of a text first

  bool cuttable() const {
    return model_type == 2 && byte_fallback && !space_as_suffix && identity && !squeezes_spaces &&
           escapes_spaces;
  }
};

/// None where the bytes are no protocol buffer.
std::optional<SentencepieceSpecification> read_sentencepiece_specification(std::string_view model);

}  // namespace bamtrain

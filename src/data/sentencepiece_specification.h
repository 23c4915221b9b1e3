#pragma once
// Settings of a SentencePiece model, parsed from its bytes: the library does not expose them.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bamtrain {

/// The settings that decide how text is encoded. Field numbers and defaults are those of
/// sentencepiece_model.proto.
struct SentencepieceSpecification {
  uint64_t model_type = 1;  // 2: BPE
  bool byte_fallback = false;
  bool space_as_suffix = false;
  bool identity = true;  // no table of character replacements, in either direction
  bool dummy_prefix = true;
  bool squeezes_spaces = true;
  bool escapes_spaces = true;
  std::vector<int32_t> user_defined = {};  // matched in the text before merging

  bool cuttable() const {
    return model_type == 2 && byte_fallback && !space_as_suffix && identity && !squeezes_spaces &&
           escapes_spaces;
  }
};

/// Returns nullopt if the bytes are not a protocol buffer.
std::optional<SentencepieceSpecification> read_sentencepiece_specification(std::string_view model);

}  // namespace bamtrain

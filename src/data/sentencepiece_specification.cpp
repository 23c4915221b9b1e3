#include "data/sentencepiece_specification.h"

namespace bamtrain {
namespace {

/// Iterates over the fields of one protocol buffer message. A damaged message ends with ok false.
struct WireReader {
  std::string_view rest;
  bool ok = true;
  uint64_t field = 0;
  uint64_t number = 0;     // the value of a varint field
  std::string_view bytes;  // the value of a length-delimited field

  explicit WireReader(std::string_view message) : rest(message) {}

  bool next() {
    number = 0;
    bytes = {};
    if (rest.empty()) return false;
    const uint64_t tag = varint();
    field = tag >> 3;
    switch (tag & 7) {
      case 0:
        number = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        bytes = take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        ok = false;
    }
    return ok;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest.front());
      rest.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    ok = false;
    return 0;
  }
  std::string_view take(uint64_t n) {
    ok = ok && n <= rest.size();
    const std::string_view taken = ok ? rest.substr(0, n) : std::string_view();
    rest.remove_prefix(taken.size());
    return taken;
  }
};

}  // namespace

std::optional<SentencepieceSpecification> read_sentencepiece_specification(std::string_view model) {
  SentencepieceSpecification s;
  WireReader top(model);
  int32_t id = 0;  // of the next vocabulary entry
  while (top.next()) {
    const bool known = top.field == 1 || top.field == 2 || top.field == 3 || top.field == 5;
    WireReader spec(known ? top.bytes : "");
    while (spec.next()) {
      if (top.field == 1) {  // vocabulary entry
        if (spec.field == 3 && spec.number == 4) s.user_defined.push_back(id);
      } else if (top.field == 2) {  // TrainerSpec
        if (spec.field == 3) s.model_type = spec.number;
        if (spec.field == 24) s.space_as_suffix = spec.number != 0;
        if (spec.field == 35) s.byte_fallback = spec.number != 0;
      } else {  // NormalizerSpec
        if (spec.field == 2 && !spec.bytes.empty()) s.identity = false;
        if (top.field == 5) continue;  // other fields of the denormalizer have no effect
        if (spec.field == 3) s.dummy_prefix = spec.number != 0;
        if (spec.field == 4) s.squeezes_spaces = spec.number != 0;
        if (spec.field == 5) s.escapes_spaces = spec.number != 0;
      }
    }
    if (!spec.ok) return std::nullopt;
    if (top.field == 1) ++id;
  }
  return top.ok ? std::optional(s) : std::nullopt;
}

}  // namespace bamtrain

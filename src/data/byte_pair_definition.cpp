#include "data/byte_pair_definition.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "core/utf8.h"

namespace bamtrain {
namespace {

/// Printable Latin-1 bytes map to themselves, the others to U+0100 onward, in byte order.
struct Alphabet {
  std::array<uint32_t, 256> character;
  std::array<int, 0x144> byte;

  Alphabet() {
    byte.fill(-1);
    uint32_t other = 0x100;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool printable =
          (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      character[b] = printable ? b : other++;
      byte[character[b]] = static_cast<int>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet one;
  return one;
}

}  // namespace

BytePairDefinition::Token& token_at(BytePairDefinition* definition, int64_t id) {
  const auto at = static_cast<size_t>(id);
  if (at >= definition->tokens.size()) definition->tokens.resize(at + 1);
  return definition->tokens[at];
}

int32_t control_token(const BytePairDefinition& definition, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = std::find_if(
        definition.tokens.begin(), definition.tokens.end(),
        [&](const auto& t) { return t.kind == TokenKind::control && t.bytes == name; });
    if (found != definition.tokens.end()) {
      return static_cast<int32_t>(found - definition.tokens.begin());
    }
  }
  return -1;
}

std::string spelled_bytes(const std::string& bytes) {
  std::string spelling;
  for (const char c : bytes) {
    const uint32_t code = alphabet().character[static_cast<unsigned char>(c)];
    if (code < 0x80) {
      spelling += static_cast<char>(code);
    } else {
      spelling += static_cast<char>(0xC0 | code >> 6);
      spelling += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return spelling;
}

bool bytes_of_spelling(const std::string& spelling, std::string* bytes) {
  bytes->clear();
  for (size_t at = 0; at < spelling.size();) {
    const Utf8Character c = utf8_character_at(spelling, at);
    if (!c.valid || c.code >= alphabet().byte.size() || alphabet().byte[c.code] < 0) return false;
    *bytes += static_cast<char>(alphabet().byte[c.code]);
    at += c.bytes;
  }
  return true;
}

std::vector<BytePairDefinition::Merge> merges_by_rank(
    const std::vector<BytePairDefinition::Token>& tokens) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].kind == TokenKind::normal && !tokens[id].added)
      ids[tokens[id].bytes] = static_cast<int32_t>(id);
  }
  std::vector<BytePairDefinition::Merge> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].kind != TokenKind::normal || tokens[id].added) continue;
    const std::string_view bytes = tokens[id].bytes;
    const auto rank = static_cast<int32_t>(id);
    for (size_t n = 1; n < bytes.size(); ++n) {
      const auto left = ids.find(bytes.substr(0, n));
      if (left == ids.end()) continue;
      const auto right = ids.find(bytes.substr(n));
      if (right != ids.end()) merges.push_back({left->second, right->second, rank, rank});
    }
  }
  return merges;
}

}  // namespace bamtrain

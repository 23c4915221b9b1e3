#include "core/utf8.h"

#include <cstdint>
#include <string>
#include <vector>

#include "catch.h"

namespace bamtrain {
namespace {

constexpr size_t kNone = std::string_view::npos;

/// The UTF-8 encoding of a code point, computed arithmetically.
std::string encoded(uint32_t c) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

TEST_CASE("the encoding of every code point but surrogates is valid") {
  int64_t wrong = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    wrong += (first_invalid_utf8(encoded(c)) == kNone) == surrogate;
  }
  CHECK(wrong == 0);
  for (uint32_t c : {0x110000u, 0x13FFFFu}) CHECK(first_invalid_utf8(encoded(c)) == 0);
}

TEST_CASE("as many byte strings are valid as there are ways to join encodings to that length") {
  const int64_t one = 0x80, two = 0x800 - 0x80, three = 0x10000 - 0x800 - 0x800;
  int64_t valid2 = 0, valid3 = 0;
  std::string text(3, '\0');
  for (int a = 0; a < 256; ++a) {
    text[0] = static_cast<char>(a);
    for (int b = 0; b < 256; ++b) {
      text[1] = static_cast<char>(b);
      valid2 += first_invalid_utf8(text.substr(0, 2)) == kNone;
      for (int c = 0; c < 256; ++c) {
        text[2] = static_cast<char>(c);
        valid3 += first_invalid_utf8(text) == kNone;
      }
    }
  }
  CHECK(valid2 == one * one + two);
  CHECK(valid3 == one * one * one + 2 * one * two + three);
}

TEST_CASE("of four bytes, only code points from U+10000 to U+10FFFF are valid") {
  int64_t valid = 0;
  for (int a = 0xF0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      for (int c : {0x7F, 0x80, 0xBF, 0xC0}) {
        for (int d : {0x7F, 0x80, 0xBF, 0xC0}) {
          const std::string text = {static_cast<char>(a), static_cast<char>(b),
                                    static_cast<char>(c), static_cast<char>(d)};
          valid += first_invalid_utf8(text) == kNone;
        }
      }
    }
  }
  CHECK(valid == (0x110000 - 0x10000) / 0x1000 * 2 * 2);
}

TEST_CASE("the first bad byte is found behind text of any length") {
  for (size_t before = 0; before < 40; ++before) {
    const std::string ascii(before, 'x');
    CHECK(first_invalid_utf8(ascii) == kNone);
    CHECK(first_invalid_utf8(ascii + "\xC3\xA9") == kNone);
    CHECK(first_invalid_utf8(ascii + "\xC3") == before);
    CHECK(first_invalid_utf8(ascii + "\xE6\x97\xA5\xFF tail of the text") == before + 3);
    CHECK(first_invalid_utf8(ascii + "\xED\xA0\x80") == before);  // a surrogate
    CHECK(first_invalid_utf8(ascii + "\xC0\xAF") == before);      // an overlong slash
  }
  CHECK(first_invalid_utf8("") == kNone);
}

TEST_CASE("bad parts are replaced as Python's decode(errors=\"replace\") does") {
  const std::string r = "\xEF\xBF\xBD";
  // Expected values: Python 3, bytes.decode("utf-8", "replace").
  CHECK(replace_invalid_utf8("plain") == "plain");
  CHECK(replace_invalid_utf8("a\xFFz") == "a" + r + "z");
  CHECK(replace_invalid_utf8("a\xE6\x97z") == "a" + r + "z");
  CHECK(replace_invalid_utf8("a\xE6\x97") == "a" + r);
  CHECK(replace_invalid_utf8("\xF0\x9F\x8Ez") == r + "z");
  CHECK(replace_invalid_utf8("\xED\xA0\x80") == r + r + r);
  CHECK(replace_invalid_utf8("\xC0\xAF") == r + r);
  CHECK(replace_invalid_utf8("\xF4\x90\x80\x80") == r + r + r + r);
  CHECK(replace_invalid_utf8("\xE6\xE6\x97\xA5") == r + "\xE6\x97\xA5");
}

TEST_CASE("characters have the code points and lengths that they were encoded with") {
  int64_t wrong = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string text = "x" + encoded(c) + "x";
    const Utf8Character found = utf8_character_at(text, 1);
    wrong += !found.valid || found.code != c || found.bytes != text.size() - 2;
  }
  CHECK(wrong == 0);
  const Utf8Character bad = utf8_character_at("a\xE6\x97z", 1);
  CHECK_FALSE(bad.valid);
  CHECK(bad.code == 0xE6);
  CHECK(bad.bytes == 2);
}

TEST_CASE("controls other than tab and newline are replaced, and nothing else") {
  const std::string r = "\xEF\xBF\xBD";
  CHECK(replace_controls("a\tb\nc \xC3\xA9\xE6\x97\xA5~") == "a\tb\nc \xC3\xA9\xE6\x97\xA5~");
  CHECK(replace_controls(std::string("\0\x1B[2J\r\x07\x7F", 8)) == r + r + "[2J" + r + r + r);
  CHECK(replace_controls("\xC2\x9B"
                         "31m\xC2\xA0") == r + "31m\xC2\xA0");  // CSI; a space
  CHECK(replace_controls("").empty());
}

TEST_CASE("what turns a text around, breaks its line or is no character is replaced") {
  // The Unicode Standard 15: 65 controls, two of which are kept; 2 separators; 5 embeddings and
  // overrides, 4 isolates; 66 noncharacters (section 23.7).
  int64_t replaced = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    replaced += replace_controls(encoded(c)) != encoded(c);
  }
  CHECK(replaced == 65 - 2 + 2 + 5 + 4 + 66);
  const std::string r = "\xEF\xBF\xBD";
  for (uint32_t c : {0x202Au, 0x202Eu, 0x2066u, 0x2069u, 0x2028u, 0xFDD0u, 0xFFFEu, 0x10FFFFu}) {
    CHECK(printable("a" + encoded(c) + "b") == "a" + r + "b");
  }
  // Right-to-left marks and emoji joiners are kept.
  for (uint32_t c : {0x200Du, 0x200Eu, 0x200Fu, 0xFFFDu, 0xFEFFu}) {
    CHECK(printable(encoded(c)) == encoded(c));
  }
}

TEST_CASE("a cut moves back to the start of the character that it would cut") {
  const std::string text = "a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x8E\x89z";
  const std::vector<size_t> expected = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  REQUIRE(expected.size() == text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    INFO(at);
    CHECK(utf8_boundary_before(text, at) == expected[at]);
  }
  // It goes back at most the length of one character, whatever the bytes.
  CHECK(utf8_boundary_before(std::string(20, '\x80'), 10) == 7);
}

}  // namespace
}  // namespace bamtrain

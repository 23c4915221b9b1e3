// The text shown while bytes arrive in chunks.

#include "eval/text_stream.h"

#include <algorithm>

#include "catch.h"
#include "core/rng.h"
#include "core/utf8.h"
#include "data/tokenizer.h"
#include "data/tokenizers.h"
#include "tools/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using Strings = std::vector<std::string>;

struct Shown {
  std::string text;
  Strings pieces;
  bool stopped = false;
};

Shown shown(const Strings& pieces, const Strings& stops = {}) {
  TextStream stream(stops);
  Shown s;
  for (const std::string& p : pieces) s.text += s.pieces.emplace_back(stream.add(p));
  s.text += s.pieces.emplace_back(stream.finish());
  s.stopped = stream.stopped();
  for (const std::string& p : s.pieces) CHECK(first_invalid_utf8(p) == std::string_view::npos);
  return s;
}

/// `text` in chunks of up to `most` bytes.
Strings cut(const std::string& text, const Rng& rng, uint64_t most) {
  Strings pieces;
  for (size_t at = 0; at < text.size(); at += pieces.back().size()) {
    pieces.push_back(text.substr(at, rng.below(at, most) + 1));
  }
  return pieces;
}

/// The text before the first completed stop string, the longest of several; without one the whole
/// text.
std::string before_stop(const std::string& text, const Strings& stops) {
  for (size_t n = 1; n <= text.size(); ++n) {
    size_t longest = 0;
    for (const std::string& s : stops) {
      if (text.substr(0, n).ends_with(s)) longest = std::max(longest, s.size());
    }
    if (longest > 0) return text.substr(0, n - longest);
  }
  return text;
}

}  // namespace

TEST_CASE("a character is shown once its last byte is there") {
  TextStream stream({});
  CHECK(stream.add("a\xF0\x9F") == "a");
  CHECK(stream.add("\x8E") == "");
  CHECK(stream.add("\x89"
                   "b\xC3") ==
        "\xF0\x9F\x8E\x89"
        "b");
  CHECK(stream.add("\xA9") == "\xC3\xA9");
  CHECK(stream.finish() == "");
}

TEST_CASE("what becomes no character is U+FFFD as soon as that is known") {
  TextStream stream({});
  CHECK(stream.add("\x80") == "\xEF\xBF\xBD");
  CHECK(stream.add("\xE2\x82") == "");
  CHECK(stream.add("x") == "\xEF\xBF\xBDx");
  CHECK(stream.add("\xFF\xC0") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(stream.add("\xF0\x9F") == "");
  CHECK(stream.finish() == "\xEF\xBF\xBD");
}

TEST_CASE("however bytes are cut, all is shown as if they came at once") {
  const Rng rng(1, "test.text_stream");
  const Strings parts = {"a",        "\xC3\xA9",         "\xE6\x97\xA5", "\xF0\x9F\x8E\x89",
                         "\x80",     "\xE2\x82",         "\xF0\x9F\x8E", "\xED\xA0\x80",
                         "\xC0\xAF", "\xF4\x90\x80\x80", "\xFF",         std::string(1, '\0')};
  for (uint64_t n = 0; n < 500; ++n) {
    std::string text;
    for (uint64_t i = 0; i < 12; ++i) text += parts[rng.below(100 * n + i, parts.size())];
    const std::string whole = replace_invalid_utf8(text);
    CHECK(shown({text}).text == whole);
    for (const uint64_t most : {1, 2, 5}) {
      CHECK(shown(cut(text, Rng(n, "cuts"), most)).text == whole);
    }
  }
}

TEST_CASE("neither a stop string over several pieces nor its beginning is shown") {
  TextStream stream({"\nUser:"});
  CHECK(stream.add("Hello\n") == "Hello");
  CHECK(stream.add("Us") == "");
  CHECK(stream.add("es\nUse") == "\nUses");
  CHECK_FALSE(stream.stopped());
  CHECK(stream.add("r: more") == "");
  CHECK(stream.stopped());
  CHECK(stream.add("and more") == "");
  CHECK(stream.finish() == "");
}

TEST_CASE("the beginning of a stop string that never ends is shown in the end") {
  const Shown s = shown({"a", "b<", "st"}, {"<stop>"});
  CHECK(s.text == "ab<st");
  CHECK_FALSE(s.stopped);
}

TEST_CASE("the text ends before the stop string that is complete first, the longest of several") {
  CHECK(shown({"xabcy"}, {"abc", "b"}).text == "xa");
  CHECK(shown({"x", "ab", "cy"}, {"bc", "abc", "c"}).text == "x");
  CHECK(shown({"abc"}, {"abc"}).text == "");
  CHECK(shown({"aabaab"}, {"aab", "baa"}).text == "");
}

TEST_CASE("stop strings are found wherever the text is cut, and no more is held back than may be") {
  const Rng rng(2, "test.text_stream");
  uint64_t draw = 0;
  const auto word = [&](uint64_t most) {
    const Strings letters = {"a", "b", "\xC3\xA9"};
    std::string w;
    for (uint64_t n = 1 + rng.below(draw++, most); n > 0; --n) w += letters[rng.below(draw++, 3)];
    return w;
  };
  int stopped = 0;
  for (int n = 0; n < 1000; ++n) {
    const Strings stops = {word(4), word(6)};
    const std::string text = word(24), expected = before_stop(text, stops);
    TextStream stream(stops);
    std::string so_far, read;
    for (const std::string& piece : cut(text, Rng(static_cast<uint64_t>(n), "cuts"), 3)) {
      so_far += stream.add(piece);
      read += piece;
      if (stream.stopped()) break;
      // Held back: the longest suffix of the text read, in whole characters, that begins a stop
      // string.
      std::string whole = read;
      while (first_invalid_utf8(whole) != std::string_view::npos) whole.pop_back();
      size_t held = 0;
      for (const std::string& s : stops) {
        for (size_t k = 1; k < s.size(); ++k) {
          if (whole.ends_with(s.substr(0, k))) held = std::max(held, k);
        }
      }
      CHECK(so_far == whole.substr(0, whole.size() - held));
    }
    so_far += stream.finish();
    INFO(text << ", stops " << stops[0] << " and " << stops[1]);
    CHECK(so_far == expected);
    CHECK(stream.stopped() == (expected.size() < text.size()));
    stopped += stream.stopped();
  }
  CHECK(stopped > 300);
  CHECK(stopped < 1000);
}

TEST_CASE("characters that a tokenizer spells in bytes arrive whole, and end at stop strings") {
  const TemporaryFolder folder;
  // SentencePiece's bytes, and byte-level BPEs, whose tokens contain parts of characters.
  const std::string path = GENERATE("", "gpt2.json", "neox.json", "tekken.json");
  const Tokenizer tokenizer =
      Tokenizer::open(path.empty() ? small_tokenizer(folder) : golden_path(path));
  const std::string text = "The old \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x8E\x89 river, caf\xC3\xA9.";
  const std::vector<int32_t> ids = tokenizer.encode(text);
  Strings pieces;
  for (size_t i = 0; i < ids.size(); ++i) pieces.push_back(tokenizer.bytes(ids[i], i == 0));
  REQUIRE(std::any_of(pieces.begin(), pieces.end(), [](const std::string& p) {
    return first_invalid_utf8(p) != std::string_view::npos;  // some characters are split
  }));
  CHECK(shown(pieces).text == text);
  // Every substring is used as a stop string; most span several tokens.
  int within = 0;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t n = 1; begin + n <= text.size() && n < 12; ++n) {
      const std::string stop = text.substr(begin, n);
      if (first_invalid_utf8(stop) != std::string_view::npos) continue;
      INFO(path << " " << stop);
      CHECK(shown(pieces, {stop}).text == text.substr(0, text.find(stop)));
      size_t at = 0;  // position where the token begins
      bool starts = false;
      for (const std::string& piece : pieces) {
        starts = starts || at == text.find(stop);
        at += piece.size();
      }
      within += !starts;
    }
  }
  CHECK(within > 20);  // stops that begin inside a token
}

#include "data/split_pattern.h"

#include <string>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "data/byte_pair_definition.h"

namespace bamtrain {
namespace {

std::vector<std::string> cut(const std::string& regex, const std::string& text) {
  const SplitPattern pattern(regex, "here");
  SplitPattern::Matcher matcher(pattern);
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = matcher.next(text, begin);
    REQUIRE(end > begin);
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST_CASE("text is cut in matches and in what lies between them") {
  CHECK(cut(kGpt2Pattern, "I've  12 naïve cafés!") ==
        Pieces{"I", "'ve", " ", " 12", " naïve", " cafés", "!"});
  CHECK(cut(R"(\p{N})", "ab12c") == Pieces{"ab", "1", "2", "c"});
  CHECK(cut(R"(\p{N}+)", "12ab345") == Pieces{"12", "ab", "345"});
  CHECK(cut("x", "aaa") == Pieces{"aaa"});
  CHECK(cut(R"(\+\+)", "a++b") == Pieces{"a", "++", "b"});
}

// Expected values: Split(Regex(...), "isolated") of Hugging Face's tokenizers 0.23.3.
TEST_CASE("a match of nothing cuts where it is, but right behind another") {
  CHECK(cut("b*", "aébba") == Pieces{"a", "é", "bb", "a"});
  CHECK(cut("", "aé") == Pieces{"a", "é"});
  const std::string by_three = R"((?=(\d{3})+(?!\d)))";
  CHECK(cut(by_three, "1234567 and 12 or 123456") ==
        Pieces{"1", "234", "567 and 12 or ", "123", "456"});
  CHECK(cut(by_three + "|x", "x123x1234x") == Pieces{"x", "123", "x", "1", "234", "x"});
  CHECK(cut(R"((?=x)|\d+)", "12x3xx4x") == Pieces{"12", "x", "3", "x", "x", "4", "x"});
  CHECK(cut(R"(\s*)", "a  b\n") == Pieces{"a", "  ", "b", "\n"});
  CHECK(cut(R"(\p{N}*(?=b))", "12b3bb") == Pieces{"12", "b", "3", "b", "b"});
  CHECK(cut("(?!x)", "axéx") == Pieces{"ax", "éx"});
  CHECK(cut("(?=é)", "éaéé") == Pieces{"éa", "é", "é"});
}

TEST_CASE("a matcher begins anew with each text") {
  const SplitPattern pattern(R"((?=x))", "here");
  SplitPattern::Matcher matcher(pattern);
  CHECK(matcher.next("aax", 0) == 2);
  CHECK(matcher.next("ax", 0) == 1);
  CHECK(matcher.next("ax", 1) == 2);
}

TEST_CASE("white space is Unicode's, within classes and without") {
  // U+180E is not white space since Unicode 6.3, but PCRE2's own \s matches it.
  CHECK(cut(R"(\s)", "a\u180eb\u2003c\u0085d") == Pieces{"a\u180eb", "\u2003", "c", "\u0085", "d"});
  CHECK(cut(R"([^\s\p{L}]+)", "a\u180eb c") == Pieces{"a", "\u180e", "b c"});
  CHECK(cut(R"(\S+)", "a\u180eb c") == Pieces{"a\u180eb", " ", "c"});
}

TEST_CASE("a property that is a script is that script") {
  // U+3001 is in Han's script extensions, but not in the script.
  CHECK(cut(R"(\p{Han}+)", "人、智") == Pieces{"人", "、", "智"});
  CHECK(cut(R"([^\p{Han}]+)", "a人b") == Pieces{"a", "人", "b"});
}

TEST_CASE("a long run is cut in one piece and in little time") {
  const std::string run(3'000'000, 'A');
  CHECK(
      cut(R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}]*[\p{Ll}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}]+[\p{Ll}]*)",
          run)
          .size() == 1);
  CHECK(cut(R"(\s+(?!\S)|\s+)", std::string(3'000'000, ' ') + "x").size() == 3);
}

TEST_CASE("patterns that libraries read in different ways are refused, with what is in them") {
  const auto refused = [](const std::string& regex, const std::string& what) {
    INFO(regex);
    try {
      SplitPattern(regex, "t.json");
      FAIL("it is taken");
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::data);
      CHECK(std::string(e.what()).find("t.json") != std::string::npos);
      CHECK(std::string(e.what()).find(what) != std::string::npos);
    }
  };
  refused("^a", "^");
  refused("a$", "$");
  refused(R"(\w+)", "\\w");
  refused(R"(\bx)", "\\b");
  refused(R"(\h)", "\\h");
  refused(R"((a)\1)", "\\1");
  refused("(?<n>a)", "(?<n");
  refused("(?m:a)", "(?m:");
  refused("[a[b]]", "a class within a class");
  refused(R"([\p{L}&&a])", "&&");
  refused("[]a]", "begins with ]");
  refused("[a", "without its end");
  refused("(a", "by PCRE2");
  refused(R"(\p{Nonsense})", "by PCRE2");
  refused(R"(\p{L)", "without its end");
  refused(R"(\x{12)", "without its end");
  refused("a\\", "\\");
}

}  // namespace
}  // namespace bamtrain

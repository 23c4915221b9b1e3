#include "prompts/haystack.h"

#include "catch.h"
#include "data/files.h"
#include "prompts/support.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("needles stand before their units, and where it is said") {
  const Haystack h = hide({"a", "bb", "c"}, {{0, "X"}, {2, "YY"}, {2, "Z", false}, {3, "W"}}, ' ');
  CHECK(h.text == "X a bb YY Z c W");
  REQUIRE(h.needles.size() == 4);
  CHECK(h.needles[0].at == 0);
  CHECK(h.needles[1].at == 7);
  CHECK(h.needles[1].size == 2);
  CHECK(h.needles[1].asked);
  CHECK(h.needles[2].at == 10);
  CHECK_FALSE(h.needles[2].asked);
  CHECK(h.needles[3].at == 14);
  CHECK(hide({}, {{0, "X"}}, '\n').text == "X");
  CHECK(hide({"a", "b"}, {}, '\n').text == "a\nb");
}

TEST_CASE("a text is its words, over and over") {
  const HaystackText text(" one\ttwo \n\n three\r\n");
  CHECK(text.size() == 3);
  CHECK(text.first(1) == "one");
  CHECK(text.first(3) == "one two three");
  CHECK(text.first(7) == "one two three one two three one");
}

TEST_CASE("a file that is no text is refused") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& content) {
    write_bytes(folder.file("t"), content);
    return error_of(ExitCode::data, [&] { HaystackText::read(folder.file("t")); });
  };
  CHECK(contains(refused(" \n "), "words for a haystack"));
  CHECK(contains(refused("abc \xff"), "not valid UTF-8 at byte 4"));
  CHECK(contains(error_of(ExitCode::io, [&] { HaystackText::read(folder.file("none")); }), "none"));
  write_bytes(folder.file("t"), "\xe2\x80\x9cGo\xe2\x80\x9d it");
  CHECK(HaystackText::read(folder.file("t")).size() == 2);
}

}  // namespace
}  // namespace bamtrain

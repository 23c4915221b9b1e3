#include "prompts/string_match.h"

#include "catch.h"

namespace bamtrain {
namespace {

TEST_CASE("the share of references that an output holds, whatever their case") {
  CHECK(string_match("It is 1234567.", {"1234567"}) == 1.0);
  CHECK(string_match("It is 123456.", {"1234567"}) == 0.0);
  CHECK(string_match("abc and DEF", {"ABC", "def", "ghi", "c a"}) == 0.75);
  CHECK(string_match("a12345678b", {"1234567"}) == 1.0);  // also inside a longer number
  CHECK(string_match("", {"x", "y"}) == 0.0);
  CHECK(string_match("twice", {"twice", "twice"}) == 1.0);
  CHECK(string_match("\u00c4", {"\u00e4"}) == 0.0);  // ASCII only
  CHECK(string_match_any("abc and DEF", {"xyz", "def"}) == 1.0);
  CHECK(string_match_any("abc", {"xyz", "def"}) == 0.0);
}

}  // namespace
}  // namespace bamtrain

#include "core/nearest.h"

#include "catch.h"

using bamtrain::edit_distance;
using bamtrain::is_slip;
using bamtrain::nearest_name;

TEST_CASE("edit distance counts insertions, deletions, substitutions and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("widht", "width") == 1);
  CHECK(edit_distance("Width", "width") == 0);
  CHECK(edit_distance("ca", "abc") == 3);  // no edit inside a swap: optimal string alignment
}

TEST_CASE("the nearest name is the one a typist meant") {
  const std::vector<std::string> names = {"vocab", "width", "layers", "heads", "kv_heads"};
  CHECK(nearest_name("wdith", names) == "width");
  CHECK(nearest_name("LAYERS", names) == "layers");
  CHECK(nearest_name("kvheads", names) == "kv_heads");
  CHECK(nearest_name("head", names) == "heads");
  CHECK(nearest_name("q", names).empty());
  CHECK(nearest_name("width", {}).empty());
  CHECK(nearest_name("ab", {"ax", "ay"}) == "ax");
  CHECK(nearest_name(std::string(1 << 20, 'q'), names).empty());
}

TEST_CASE("a slip is two edits, or one in three letters") {
  CHECK(is_slip("evla", "eval"));
  CHECK(is_slip("--chekpont", "--checkpoint"));
  CHECK(is_slip("abcdefghi", "abcdefxyz"));
  CHECK_FALSE(is_slip("abcdefgh", "abcdexyz"));
  CHECK_FALSE(is_slip("abc", "xyz"));
}

#include "core/nearest.h"

#include "catch.h"

using bamtrain::edit_distance;
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

TEST_CASE("a slip is one edit in three letters, of the whole name or of its beginning") {
  CHECK(nearest_name("evla", {"eval"}) == "eval");
  CHECK(nearest_name("--chekpont", {"--checkpoint"}) == "--checkpoint");
  CHECK(nearest_name("abcdefghi", {"abcdefxyz"}) == "abcdefxyz");
  CHECK(nearest_name("abcdefgh", {"abcdexyz"}).empty());
  CHECK(nearest_name("abc", {"xyz"}).empty());
  CHECK(nearest_name("trian", {"train_it_all"}) == "train_it_all");
  CHECK(nearest_name("rms", {"layernorm", "rmsnorm"}) == "rmsnorm");
  CHECK(nearest_name("rm", {"rmsnorm"}).empty());
}

TEST_CASE("what other programs call it is the name that is meant, where that is one") {
  CHECK(nearest_name("gpu", {"auto", "cpu", "cuda", "check"}) == "cuda");
  CHECK(nearest_name("GPU", {"cpu", "cuda"}) == "cuda");
  CHECK(nearest_name("gpu", {"auto", "cpu"}) == "cpu");
  CHECK(nearest_name("adam", {"radam", "adamw"}) == "adamw");
  CHECK(nearest_name("adam", {"radam"}) == "radam");
  CHECK(nearest_name("bfloat16", {"fp32", "bf16"}) == "bf16");
}

TEST_CASE("a name that shares a letter or two with the word is not suggested") {
  CHECK(nearest_name("abf", {"none", "linear", "ntk", "yarn", "llama3"}).empty());
  CHECK(nearest_name("buckets", {"share"}).empty());
  CHECK(nearest_name("r2", {"kernel"}).empty());
  CHECK(nearest_name("theta_alpha", {"init", "share", "train"}).empty());
}

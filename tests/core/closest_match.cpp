#include "core/closest_match.h"

#include "catch.h"

using bamtrain::closest_match;
using bamtrain::edit_distance;

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
  CHECK(closest_match("wdith", names) == "width");
  CHECK(closest_match("LAYERS", names) == "layers");
  CHECK(closest_match("kvheads", names) == "kv_heads");
  CHECK(closest_match("head", names) == "heads");
  CHECK(closest_match("q", names).empty());
  CHECK(closest_match("width", {}).empty());
  CHECK(closest_match("ab", {"ax", "ay"}) == "ax");
  CHECK(closest_match(std::string(1 << 20, 'q'), names).empty());
}

TEST_CASE("a slip is one edit in three letters, of the whole name or of its beginning") {
  CHECK(closest_match("evla", {"eval"}) == "eval");
  CHECK(closest_match("--chekpont", {"--checkpoint"}) == "--checkpoint");
  CHECK(closest_match("abcdefghi", {"abcdefxyz"}) == "abcdefxyz");
  CHECK(closest_match("abcdefgh", {"abcdexyz"}).empty());
  CHECK(closest_match("abc", {"xyz"}).empty());
  CHECK(closest_match("trian", {"train_it_all"}) == "train_it_all");
  CHECK(closest_match("rms", {"layernorm", "rmsnorm"}) == "rmsnorm");
  CHECK(closest_match("--out", {"--count", "--output"}) == "--output");
  CHECK(closest_match("rm", {"rmsnorm"}).empty());
}

TEST_CASE("what other programs call it is the name that is meant, where that is one") {
  CHECK(closest_match("gpu", {"auto", "cpu", "cuda", "check"}) == "cuda");
  CHECK(closest_match("GPU", {"cpu", "cuda"}) == "cuda");
  CHECK(closest_match("gpu", {"auto", "cpu"}) == "cpu");
  CHECK(closest_match("adam", {"radam", "adamw"}) == "adamw");
  CHECK(closest_match("adam", {"radam"}) == "radam");
  CHECK(closest_match("bfloat16", {"fp32", "bf16"}) == "bf16");
  CHECK(closest_match("rotary", {"nope", "alibi", "rope"}) == "rope");
  CHECK(closest_match("hellaswag", {"copy", "choice", "cloze"}) == "choice");
  CHECK(bamtrain::name_here("learning_rate") == "lr");
  CHECK(bamtrain::name_here("width").empty());
}

TEST_CASE("a name that shares a letter or two with the word is not suggested") {
  CHECK(closest_match("abf", {"none", "linear", "ntk", "yarn", "llama3"}).empty());
  CHECK(closest_match("buckets", {"share"}).empty());
  CHECK(closest_match("r2", {"kernel"}).empty());
  CHECK(closest_match("theta_alpha", {"init", "share", "train"}).empty());
}

#include "data/shard_set.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "files.h"
#include "windows.h"

namespace bamtrain {
namespace {

using namespace testing;

Manifest manifest_of(const std::vector<std::pair<std::string, int64_t>>& shards) {
  Manifest m;
  m.tokenizer_sha256 = std::string(64, 'a');
  m.vocab = 1000;
  m.document_start = 1;
  for (const auto& [file, tokens] : shards) {
    m.shards.push_back({file, tokens, 0, std::string(64, 'b')});
    m.tokens += tokens;
  }
  return m;
}

TEST_CASE("a folder is its *.bin in the order of their names, a pattern is what it matches") {
  const TemporaryFolder folder;
  write_bytes(folder.file("x_000010.bin"), shard_bytes({10}));
  write_bytes(folder.file("x_000009.bin"), shard_bytes({9}));
  write_bytes(folder.file("Y.bin"), shard_bytes(20240801, 7, 1, 4, {50000}));  // a different width
  write_bytes(folder.file("x_000001.bin.tmp"), "unfinished");
  write_bytes(folder.file("notes.txt"), "");
  write_bytes(folder.file("._Y.bin"), std::string(4096, '\0'));  // as macOS leaves next to Y.bin
  write_bytes(folder.file(".bin"), "");
  const auto firsts = [](const ShardSet& set) {
    Tokens v;
    for (int64_t i = 0; i < set.size(); ++i) {
      int32_t x = 0;
      set.read_span({i, 0, 1}, &x);
      v.push_back(x);
    }
    return v;
  };
  CHECK(firsts(ShardSet::open(folder.path(), kVocab)) == Tokens{50000, 9, 10});
  CHECK(firsts(ShardSet::open(folder.path() + "/", kVocab)) == Tokens{50000, 9, 10});
  CHECK(firsts(ShardSet::open(folder.file("x_*.bin"), kVocab)) == Tokens{9, 10});
  CHECK(firsts(ShardSet::open(folder.file("Y.bin"), kVocab)) == Tokens{50000});
}

TEST_CASE("a path without shards is named") {
  const TemporaryFolder folder;
  CHECK(contains(error_of(ExitCode::data, [&] { ShardSet::open(folder.path(), kVocab); }),
                 folder.path() + ": no token shards (*.bin) in the folder"));
  for (const char* name : {"missing", "missing/*.bin", "*.bin", "[x"}) {
    const std::string path = folder.file(name);
    CHECK(contains(error_of(ExitCode::data, [&] { ShardSet::open(path, kVocab); }), path));
  }
  write_bytes(folder.file("bad.bin"), "short");
  CHECK(contains(error_of(ExitCode::data, [&] { ShardSet::open(folder.path(), kVocab); }),
                 "bad.bin"));
}

TEST_CASE("a folder of both training and validation shards needs a pattern") {
  const TemporaryFolder folder;
  write_bytes(folder.file("fineweb_train_000001.bin"), shard_bytes({1}));
  write_bytes(folder.file("fineweb_val_000000.bin"), shard_bytes({2}));
  const std::string message =
      error_of(ExitCode::data, [&] { ShardSet::open(folder.path(), kVocab); });
  CHECK(contains(message, "fineweb_train_000001.bin and fineweb_val_000000.bin"));
  CHECK(contains(message, "*_val_*.bin"));
  CHECK(ShardSet::open(folder.file("*_train_*.bin"), kVocab).size() == 1);
}

TEST_CASE("a folder above those of shards is answered with their names") {
  const TemporaryFolder folder;
  const auto refusal = [&] {
    return error_of(ExitCode::data, [&] { ShardSet::open(folder.path(), kVocab); });
  };
  for (const char* name : {"train", "val", "other"}) {
    std::filesystem::create_directory(folder.file(name));
  }
  write_bytes(folder.file("other/a.bin"), shard_bytes({1}));
  write_bytes(folder.file("train/notes.txt"), "");
  CHECK(contains(refusal(), "; check the path, or make shards with `bamdata tokenize`"));
  write_bytes(folder.file("train/a.bin"), shard_bytes({1}));
  CHECK(contains(refusal(), folder.path() +
                                ": no token shards (*.bin) in the folder; did you mean " +
                                folder.file("train") + "?"));
  write_bytes(folder.file("val/a.bin"), shard_bytes({1}));
  CHECK(contains(refusal(),
                 "; did you mean " + folder.file("train") + " or " + folder.file("val") + "?"));
  write_bytes(folder.file("b.bin"), shard_bytes({1}));
  CHECK(ShardSet::open(folder.path(), kVocab).size() == 1);
}

TEST_CASE("shards of two folders are no set") {
  const TemporaryFolder folder;
  for (const char* part : {"1", "2"}) {
    std::filesystem::create_directory(folder.file(part));
    write_bytes(folder.file(std::string(part) + "/a.bin"), shard_bytes({1}));
  }
  CHECK(contains(error_of(ExitCode::data, [&] { ShardSet::open(folder.file("*/a.bin"), kVocab); }),
                 "shards of one folder"));
}

TEST_CASE("the manifest beside the shards is checked against them") {
  const TemporaryFolder folder;
  const std::string path = folder.file("manifest.json");
  write_bytes(folder.file("a.bin"), shard_bytes(counting(0, 30)));
  write_bytes(folder.file("b.bin"), shard_bytes(counting(0, 40)));
  CHECK_FALSE(ShardSet::open(folder.path(), kVocab).manifest());
  const ShardSet bare = ShardSet::open(folder.path(), kVocab);
  CHECK_FALSE(bare.document_start({}));
  CHECK(bare.document_start(7) == std::optional<int64_t>(7));

  const Manifest good = manifest_of({{"a.bin", 30}, {"b.bin", 40}});
  write_manifest(path, good);
  const ShardSet set = ShardSet::open(folder.path(), 1000);
  REQUIRE(set.manifest());
  CHECK(*set.manifest() == good);
  CHECK(set.document_start({}) == std::optional<int64_t>(1));
  CHECK(set.document_start(1) == std::optional<int64_t>(1));
  const std::string message = error_of(ExitCode::config, [&] { set.document_start(7); });
  CHECK(contains(message, "data.document_start: expected 1, as in the manifest of " +
                              folder.path() + ", found 7"));

  const auto refusal = [&](const std::string& source, int64_t vocab = kVocab) {
    return error_of(ExitCode::data, [&] { ShardSet::open(source, vocab); });
  };
  SECTION("a vocabulary larger than the model's") {
    const std::string message = refusal(folder.path(), 999);
    CHECK(contains(message, path + ": tokenizer.vocab"));
    CHECK(contains(message, "vocabulary of 999, found 1000"));
  }
  SECTION("another token count") {
    write_manifest(path, manifest_of({{"a.bin", 30}, {"b.bin", 41}}));
    const std::string message = refusal(folder.path());
    CHECK(contains(message, "b.bin"));
    CHECK(contains(message, "41 tokens"));
    CHECK(contains(message, "found 40"));
  }
  SECTION("a shard that it does not list") {
    write_manifest(path, manifest_of({{"a.bin", 30}}));
    CHECK(contains(refusal(folder.path()), "no entry for b.bin"));
    CHECK(contains(refusal(folder.file("b.bin")), "no entry for b.bin"));
    CHECK(ShardSet::open(folder.file("a.bin"), kVocab).tokens() == 30);
  }
  SECTION("a shard that is gone") {
    std::filesystem::remove(folder.file("b.bin"));
    const std::string message = refusal(folder.path());
    CHECK(contains(message, path));
    CHECK(contains(message, "b.bin is missing from the folder"));
    CHECK(ShardSet::open(folder.file("a.bin"), kVocab).tokens() == 30);  // opened alone
  }
  SECTION("a damaged one") {
    write_bytes(path, "{");
    CHECK(contains(refusal(folder.path()), path));
    CHECK(contains(refusal(folder.file("a.bin")), path));
  }
}

TEST_CASE("where nothing says what begins a document, the first token of all is named") {
  const TemporaryFolder folder;
  write_shards(folder, {{}, {50256, 3}, {4}});
  CHECK(ShardSet::open(folder.path(), kVocab).document_start_remedy() ==
        "--set data.document_start=50256, if documents begin with the first token of " +
            folder.file("b.bin"));
  CHECK(ShardSet::open(folder.file("a.bin"), kVocab).document_start_remedy() ==
        "--set data.document_start=ID");
}

TEST_CASE("the fingerprint is the data's, wherever the folder lies, and changes with each part") {
  const TemporaryFolder one, two;
  for (const TemporaryFolder* folder : {&one, &two}) {
    write_bytes(folder->file("a.bin"), shard_bytes(counting(0, 30)));
    write_bytes(folder->file("b.bin"), shard_bytes(counting(0, 40)));
    write_manifest(folder->file("manifest.json"), manifest_of({{"a.bin", 30}, {"b.bin", 40}}));
  }
  const auto fingerprint = [&] { return ShardSet::open(two.path(), kVocab).fingerprint(); };
  const std::string before = ShardSet::open(one.path(), kVocab).fingerprint();
  CHECK(before.size() == 64);
  CHECK(fingerprint() == before);
  CHECK(ShardSet::open(two.file("?.bin"), 2000).fingerprint() == before);
  std::set<std::string> seen = {before};

  Manifest m = manifest_of({{"a.bin", 30}, {"b.bin", 40}});
  m.shards[1].sha256[5] = 'c';
  write_manifest(two.file("manifest.json"), m);
  seen.insert(fingerprint());
  std::filesystem::remove(two.file("manifest.json"));
  seen.insert(fingerprint());
  std::filesystem::rename(two.file("b.bin"), two.file("c.bin"));
  seen.insert(fingerprint());
  write_bytes(two.file("c.bin"), shard_bytes(counting(0, 41)));
  seen.insert(fingerprint());
  std::string header = shard_bytes(counting(0, 41));
  header[1000] = 1;
  write_bytes(two.file("c.bin"), header);
  seen.insert(fingerprint());
  write_bytes(two.file("d.bin"), shard_bytes({}));
  seen.insert(fingerprint());
  CHECK(seen.size() == 7);
}

TEST_CASE("the sample is the tokens' at fixed places of each shard, wherever the folder lies") {
  const TemporaryFolder one, two;
  std::vector<uint32_t> a = counting(0, 30), b = counting(7, 10000);
  const auto sample = [&](const TemporaryFolder& folder) {
    write_shards(folder, {a, b, {}});
    return ShardSet::open(folder.path(), kVocab).sample();
  };
  const std::string before = sample(one);
  CHECK(before.size() == 64);
  CHECK(sample(two) == before);
  std::set<std::string> seen = {before};
  const auto differs = [&](uint32_t& token) {
    const uint32_t kept = std::exchange(token, 50000);
    const bool is_new = seen.insert(sample(two)).second;
    token = kept;
    return is_new;
  };
  CHECK(differs(a[15]));
  // Sampled of 10,000 tokens: 0 to 255, 3,248 to 3,503, 6,496 to 6,751, 9,744 to 9,999.
  for (const size_t in : {0, 255, 3248, 3503, 6496, 6751, 9744, 9999}) CHECK(differs(b[in]));
  for (const size_t between : {256, 3247, 3504, 6495, 6752, 9743}) {
    const uint32_t kept = std::exchange(b[between], 50000);
    CHECK(sample(two) == before);
    b[between] = kept;
  }
}

TEST_CASE("documents run from one start to the next or to the end of their shard") {
  const TemporaryFolder folder;
  write_shards(folder, {{1, 5, 6, 1, 7, 1}, {8, 9}, {8, 1, 2, 3}, {1, 1}, {}});
  const ShardSet set = ShardSet::open(folder.path(), kVocab);
  const std::vector<DocumentSpan> documents = set.documents(1);
  CHECK(documents == std::vector<DocumentSpan>{
                         {0, 0, 3}, {0, 3, 2}, {0, 5, 1}, {2, 1, 3}, {3, 0, 1}, {3, 1, 1}});
  Tokens out(3);
  set.read_span(documents[3], out.data());
  CHECK(out == Tokens{1, 2, 3});
  CHECK(set.documents(4).empty());
  for (int64_t id : {int64_t{-1}, kVocab}) {
    CHECK(contains(error_of(ExitCode::config, [&] { set.documents(id); }), "data.document_start"));
  }
  CHECK_THROWS_AS(set.read_span({5, 0, 1}, out.data()), Error);
  CHECK_THROWS_AS(set.read_span({1, 0, 3}, out.data()), Error);
}

TEST_CASE("an id is counted in the first tokens of all shards") {
  const TemporaryFolder folder;
  std::vector<uint32_t> many(200'000, 7);
  many[0] = many[65'535] = many[65'536] = many[199'999] = 3;
  write_shards(folder, {{}, {3, 4, 3}, many});
  const ShardSet set = ShardSet::open(folder.path(), kVocab);
  CHECK(set.count(3, 0) == 0);
  CHECK(set.count(3, 2) == 1);
  CHECK(set.count(3, 3) == 2);
  CHECK(set.count(3, 4) == 3);
  CHECK(set.count(3, 3 + 65'536) == 4);
  CHECK(set.count(3, 3 + 65'537) == 5);
  CHECK(set.count(3, 1'000'000) == 6);
  CHECK(set.count(5, 1'000'000) == 0);
}

}  // namespace
}  // namespace bamtrain

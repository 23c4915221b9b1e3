#include "data/shard_check.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "core/sha256.h"
#include "files.h"

namespace bamtrain {
namespace {

using namespace testing;
using Sets = std::vector<std::shared_ptr<const ShardSet>>;

/// Shards a.bin, b.bin, ... and their manifest; `damage` runs after the manifest is written.
std::shared_ptr<const ShardSet> set_with_manifest(const TemporaryFolder& folder, int shards,
                                                  size_t tokens,
                                                  const std::function<void()>& damage = nullptr) {
  std::vector<std::vector<uint32_t>> contents;
  for (int i = 0; i < shards; ++i) {
    contents.push_back(counting(static_cast<uint32_t>(i), tokens));
    for (uint32_t& id : contents.back()) id %= 50000;
  }
  write_shards(folder, contents);
  Manifest m;
  m.tokenizer_sha256 = std::string(64, 'a');
  m.vocab = 50000;
  for (int i = 0; i < shards; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".bin";
    m.shards.push_back({name, static_cast<int64_t>(tokens), 0, sha256_file(folder.file(name))});
    m.tokens += static_cast<int64_t>(tokens);
  }
  write_manifest(folder.file(kManifestName), m);
  if (damage) damage();
  return std::make_shared<const ShardSet>(ShardSet::open(folder.path(), 50000));
}

/// Replaces a byte and keeps the size.
void write_over(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at);
  file.put(static_cast<char>(0x01));
  file.close();
  REQUIRE(file);
}

/// The message with which the check fails; empty if all shards are good.
std::string outcome(ShardCheck& check) {
  check.start();
  try {
    while (!check.passed()) {
      check.require_good();
      std::this_thread::yield();
    }
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::data);
    return e.what();
  }
  check.require_good();
  return "";
}

TEST_CASE("shards that are as their manifest says pass, of every size and in every turn") {
  const TemporaryFolder small, large, none;
  write_shards(none, {counting(0, 10)});
  const Sets sets = {set_with_manifest(small, 3, 100),
                     set_with_manifest(large, 1, 700000),  // two reads long
                     std::make_shared<const ShardSet>(ShardSet::open(none.path(), 50000))};
  for (int64_t turn : {0, 1, 2, 1000}) {
    ShardCheck check(sets, 0, 1, turn);
    CHECK(check.shards() == 4);  // the fifth has no manifest
    CHECK_FALSE(check.passed());
    CHECK(outcome(check).empty());
  }
}

TEST_CASE("one byte that is another is found, by file, both digests and what to do") {
  const TemporaryFolder folder;
  const std::string path = folder.file("b.bin");
  std::string before;
  const auto set = set_with_manifest(folder, 3, 700000, [&] {
    before = sha256_file(path);
    write_over(path, 1400000);  // outside the sampled tokens
  });
  ShardCheck check({set}, 0, 1, 0);
  const std::string message = outcome(check);
  CHECK(contains(message, path + ": expected SHA-256 " + before));
  CHECK(contains(message, "found " + sha256_file(path)));
  CHECK(contains(message, "bamdata verify"));
  CHECK_FALSE(check.passed());
}

TEST_CASE("a shard that changes is found as by who reads tokens") {
  const TemporaryFolder folder;
  const auto set = set_with_manifest(folder, 1, 700000);
  std::filesystem::resize_file(folder.file("a.bin"), 5000);
  ShardCheck check({set}, 0, 1, 0);
  const std::string message = outcome(check);
  CHECK(contains(message, folder.file("a.bin") + ": expected 1401024 bytes, as when opened"));
  CHECK(contains(message, "found 5000 bytes"));
}

TEST_CASE("parts are disjoint and together all shards; more parts than shards have nothing to do") {
  for (int bad = 0; bad < 5; ++bad) {
    const TemporaryFolder folder;
    const auto set = set_with_manifest(folder, 5, 100, [&] {
      write_over(folder.file(std::string(1, static_cast<char>('a' + bad)) + ".bin"), 1100);
    });
    for (int parts : {1, 2, 4, 8}) {
      int found = 0;
      for (int part = 0; part < parts; ++part) {
        ShardCheck check({set}, part, parts, 3);
        CHECK(check.shards() == 5);
        if (part >= 5) CHECK(check.passed());
        found += outcome(check).empty() ? 0 : 1;
      }
      CHECK(found == 1);
    }
  }
}

TEST_CASE("a check ends when it is told, begun or not") {
  const TemporaryFolder folder;
  const auto set = set_with_manifest(folder, 1, 30000000);  // takes a check about a second
  { const ShardCheck never({set}, 0, 1, 0); }
  ShardCheck check({set}, 0, 1, 0);
  check.start();
  CHECK_FALSE(check.passed());
}

}  // namespace
}  // namespace bamtrain

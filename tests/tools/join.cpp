#include "data_tools/join.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include "catch.h"
#include "tools/older_set.h"
#include "tools/tokenizing.h"

namespace bamtrain {
namespace {

using namespace testing;

JoinReport joined(const std::vector<std::string>& inputs, const std::string& output) {
  return without_log([&](std::FILE* log) { return join({inputs, output, false}, log); });
}

/// All tokens of a set, shard by shard.
std::vector<int32_t> tokens_of_set(const std::string& folder) {
  std::vector<int32_t> tokens;
  const Manifest m = read_manifest(folder + "/manifest.json");
  for (const Manifest::ShardEntry& entry : m.shards) {
    const auto shard = uint16_tokens(folder + "/" + entry.file);
    CHECK(static_cast<int64_t>(shard.size()) == entry.tokens);
    CHECK(sha256_file(folder + "/" + entry.file) == entry.sha256);
    tokens.insert(tokens.end(), shard.begin(), shard.end());
  }
  CHECK(static_cast<int64_t>(tokens.size()) == m.tokens);
  return tokens;
}

/// Five inputs of different sizes.
TokenizeOptions five_inputs(const TemporaryFolder& folder) {
  TokenizeOptions o = options_for(folder, "", DocumentKind::line);
  const std::string text = numbered_lines(3000);
  o.input.paths.clear();
  size_t at = 0;
  for (const size_t lines : {700, 300, 900, 500, 600}) {
    size_t end = at;
    for (size_t i = 0; i < lines; ++i) end = text.find('\n', end) + 1;
    o.input.paths.push_back(folder.file(std::to_string(o.input.paths.size()) + ".txt"));
    write_bytes(o.input.paths.back(), text.substr(at, end - at));
    at = end;
  }
  o.shard_tokens = 20'000;
  return o;
}

std::vector<std::string> make_parts(TokenizeOptions o, int64_t of) {
  std::vector<std::string> outputs;
  const std::string name = o.output;
  for (int64_t number = 1; number <= of; ++number) {
    o.part = {number, of};
    o.output = name + "-" + std::to_string(number);
    run(o);
    outputs.push_back(o.output);
  }
  return outputs;
}

TEST_CASE("parts joined have the tokens of one call, in its order, in both sets") {
  const TemporaryFolder folder;
  TokenizeOptions o = five_inputs(folder);
  SECTION("a fraction for validation") { o.validation.fraction = 0.05; }
  SECTION("the first tokens, which are in the first part") {
    o.validation.tokens = 5000;
    o.validation.unused = 700;
  }
  run(o);
  std::vector<std::string> parts = make_parts(o, 3);
  std::swap(parts[0], parts[2]);
  const JoinReport report = joined(parts, folder.file("all"));
  CHECK(tokens_of_set(folder.file("all/train")) == tokens_of_set(o.output + "/train"));
  CHECK(tokens_of_set(folder.file("all/val")) == tokens_of_set(o.output + "/val"));
  const Manifest whole = read_manifest(o.output + "/train/manifest.json");
  CHECK(report.train.documents == whole.documents);
  CHECK_FALSE(fs::exists(folder.file("all/part.json")));
  // Linked, not copied; tokenize may replace the set.
  struct stat info {};
  REQUIRE(::stat(folder.file("all/train/000000.bin").c_str(), &info) == 0);
  CHECK(info.st_nlink == 2);
  o.output = folder.file("all");
  o.overwrite = true;
  run(o);
  o.output = parts[0];
  run(o);
}

TEST_CASE("where links cannot be, shards are copied") {
  if (!fs::exists("/dev/shm")) {
    std::printf("skipped: there is no /dev/shm\n");
    return;
  }
  struct stat here {
  }, there{};
  const TemporaryFolder folder;
  ::stat(folder.path().c_str(), &here);
  ::stat("/dev/shm", &there);
  if (here.st_dev == there.st_dev) {
    std::printf("skipped: %s and /dev/shm are one file system\n", folder.path().c_str());
    return;
  }
  TokenizeOptions o = five_inputs(folder);
  run(o);
  std::string name = "/dev/shm/bamtrain-join-XXXXXX";
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  joined({o.output}, name + "/all");
  CHECK(tokens_of_set(name + "/all/train") == tokens_of_set(o.output + "/train"));
  fs::remove_all(name);
}

TEST_CASE("outputs that are no parts are joined as they come") {
  const TemporaryFolder folder;
  TokenizeOptions o = five_inputs(folder);
  const auto paths = o.input.paths;
  o.input.paths = {paths[1]};
  o.output = folder.file("b");
  run(o);
  o.input.paths = {paths[0]};
  o.output = folder.file("a");
  run(o);
  joined({folder.file("b"), folder.file("a")}, folder.file("all"));
  auto expected = tokens_of_set(folder.file("b/train"));
  const auto more = tokens_of_set(folder.file("a/train"));
  expected.insert(expected.end(), more.begin(), more.end());
  CHECK(tokens_of_set(folder.file("all/train")) == expected);
}

TEST_CASE("the first tokenizer's file of the inputs goes with the joined set") {
  const TemporaryFolder folder;
  TokenizeOptions o = five_inputs(folder);
  const std::string model = read_bytes(o.tokenizer);
  std::vector<std::string> sets;
  for (const char* name : {"one.model", "two.model", "three.model"}) {
    fs::rename(o.tokenizer, folder.file(name));
    o.tokenizer = folder.file(name);
    o.output = folder.file(std::string("set-") + name);
    sets.push_back(o.output);
    run(o);
  }
  make_older(sets[0] + "/train");
  const auto named = [&] {
    return read_manifest(folder.file("all/train/manifest.json")).tokenizer_file;
  };
  joined(sets, folder.file("all"));
  CHECK(named() == "two.model");
  CHECK(read_bytes(folder.file("all/train/two.model")) == model);
  CHECK_FALSE(fs::exists(folder.file("all/train/three.model")));
  fs::remove_all(folder.file("all"));
  joined({sets[0]}, folder.file("all"));
  CHECK(named().empty());
  fs::remove_all(folder.file("all"));

  write_bytes(sets[1] + "/train/two.model", model + "x");
  CHECK(contains(error_of(ExitCode::data, [&] { joined(sets, folder.file("all")); }),
                 "two.model: expected the tokenizer with SHA-256 " + sha256_hex(model)));
  fs::remove(sets[1] + "/train/two.model");
  CHECK(contains(error_of(ExitCode::io, [&] { joined(sets, folder.file("all")); }),
                 "two.model: no such file"));
  CHECK_FALSE(fs::exists(folder.file("all")));
}

TEST_CASE("parts of one set may have been made with copies of the tokenizer") {
  const TemporaryFolder folder;
  TokenizeOptions o = five_inputs(folder);
  std::vector<std::string> parts;
  for (const char* name : {"one.model", "two.model"}) {
    fs::rename(o.tokenizer, folder.file(name));
    o.tokenizer = folder.file(name);
    o.part = {std::ssize(parts) + 1, 2};
    o.output = folder.file(std::string("part-") + name);
    parts.push_back(o.output);
    run(o);
  }
  CHECK(joined({parts[1], parts[0]}, folder.file("all")).train.tokenizer_file == "one.model");
}

TEST_CASE("what does not belong together is not joined, and nothing is left") {
  const TemporaryFolder folder;
  TokenizeOptions o = five_inputs(folder);
  const std::vector<std::string> parts = make_parts(o, 3);
  const std::string all = folder.file("all");
  const auto refused = [&](const std::vector<std::string>& inputs, const std::string& expected) {
    INFO(expected);
    CHECK(contains(error_of(ExitCode::data, [&] { joined(inputs, all); }), expected));
    CHECK_FALSE(fs::exists(all));
  };
  refused({parts[0], parts[2]}, "part 2 of 3 is missing");
  fs::copy(parts[1], folder.file("copy"), fs::copy_options::recursive);
  refused({parts[0], parts[1], parts[2], folder.file("copy")}, "part 2 of 3 is given 2 times");
  fs::create_directories(folder.file("nothing"));
  refused({parts[0], parts[1], folder.file("nothing")}, "found no part");
  // Inputs that would duplicate a set, or overwrite one.
  const auto misplaced = [&](const std::vector<std::string>& inputs, const std::string& output,
                             const std::string& expected) {
    INFO(expected);
    CHECK(contains(error_of(ExitCode::usage, [&] { joined(inputs, output); }), expected));
  };
  misplaced({parts[0], parts[1], parts[0] + "/../" + fs::path(parts[0]).filename().string()}, all,
            "expected each set once");
  misplaced(parts, parts[0], "expected a folder outside the inputs");
  misplaced(parts, parts[1] + "/all", "expected a folder outside the inputs");
  CHECK_FALSE(fs::exists(parts[1] + "/all"));

  TokenizeOptions other = o;
  other.shard_tokens = 10'000;
  other.output = folder.file("other");
  refused({parts[0], parts[1], make_parts(other, 3)[2]}, "expected --shard-tokens 20000, as ");
  write_bytes(o.input.paths[4], "changed\n");
  other = o;
  other.output = folder.file("changed");
  refused({parts[0], parts[1], make_parts(other, 3)[2]}, "a part of the same files");

  write_bytes(o.tokenizer, trained_model({{"byte_fallback", "true"}, {"vocab_size", "480"}}));
  other = o;
  other.output = folder.file("tokenizer");
  run(other);
  TokenizeOptions plain = five_inputs(folder);
  plain.output = folder.file("plain");
  run(plain);
  refused({other.output, plain.output}, "expected the tokenizer of");
  refused({folder.file("plain/train")}, "not an output of `bamdata tokenize`");

  const std::string shard = plain.output + "/train/000000.bin";
  write_bytes(shard, read_bytes(shard).substr(0, 3000));
  refused({plain.output}, "000000.bin");
}

}  // namespace
}  // namespace bamtrain

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "core/sha256.h"
#include "data/manifest.h"
#include "data/tokenizer.h"
#include "data_tools/inspect.h"
#include "data_tools/shard_folders.h"
#include "data_tools/verify.h"
#include "tools/support.h"
#include "tools/tokenizing.h"

namespace bamtrain {
namespace {

using namespace testing;

/// What `f` prints to the given stream.
template <class F>
std::string printed(F&& f) {
  char* memory = nullptr;
  size_t size = 0;
  std::FILE* out = ::open_memstream(&memory, &size);
  REQUIRE(out != nullptr);
  struct Release {
    std::FILE* out;
    char** memory;
    ~Release() { std::free(*memory); }
  } release{out, &memory};
  try {
    f(out);
  } catch (...) {
    std::fclose(out);
    throw;
  }
  std::fclose(out);
  return std::string(memory, size);
}

nlohmann::json inspected(InspectOptions options) {
  options.json = true;
  const std::string text = printed([&](std::FILE* out) { inspect(options, out); });
  return nlohmann::json::parse(text)["sets"];
}

/// Two shards in llm.c's format without a manifest; id 9 begins a document. Document lengths: (2
/// tokens before the first) 3, 1, 4 (across both shards), 12.
std::string two_shards(const TemporaryFolder& folder) {
  write_bytes(folder.file("a.bin"), shard_bytes({1, 2, 9, 3, 4, 9, 9, 5, 6}));
  write_bytes(folder.file("b.bin"),
              shard_bytes({7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  return folder.path();
}

TEST_CASE("document lengths of two shards counted by hand") {
  const TemporaryFolder folder;
  InspectOptions o;
  o.path = two_shards(folder);
  CHECK(inspected(o)[0]["documents"].is_null());
  o.document_start = 9;
  const auto set = inspected(o)[0];
  CHECK(set["tokens"] == 22);
  CHECK(set["manifest"].is_null());
  CHECK(set["shards"][0]["magic"] == 20240520);
  CHECK(set["shards"][0]["bytes_per_token"] == 2);
  const auto& d = set["documents"];
  CHECK(d["count"] == 4);
  CHECK(d["leading_tokens"] == 2);
  CHECK(d["min"] == 1);
  CHECK(d["median"] == 3);
  CHECK(d["mean"] == 5.0);
  CHECK(d["p90"] == 12);
  CHECK(d["max"] == 12);
  CHECK(d["histogram"] == nlohmann::json::parse(R"([
    {"from": 1, "to": 1, "documents": 1}, {"from": 2, "to": 3, "documents": 1},
    {"from": 4, "to": 7, "documents": 1}, {"from": 8, "to": 15, "documents": 1}])"));
}

TEST_CASE("a slice is counted over all shards") {
  const TemporaryFolder folder;
  InspectOptions o;
  o.path = two_shards(folder);
  o.from = 7;
  o.count = 4;
  CHECK(inspected(o)[0]["slice"]["ids"] == nlohmann::json({5, 6, 7, 9}));
  o.count = 15;
  CHECK(inspected(o)[0]["slice"]["ids"].size() == 15);
  o.count = 16;
  CHECK(contains(error_of(ExitCode::usage, [&] { inspected(o); }), "--count"));
}

/// A set as `bamdata tokenize` would write it, with its manifest.
struct GoodSet {
  TemporaryFolder folder;
  std::string tokenizer = small_tokenizer(folder);
  std::string path = folder.file("set");
  Manifest manifest;

  GoodSet() {
    std::filesystem::create_directory(path);
    std::filesystem::copy(tokenizer, path);
    manifest.tokenizer_file = "small.model";
    manifest.tokenizer_sha256 = sha256_file(tokenizer);
    manifest.vocab = 500;
    manifest.bos = manifest.document_start = 1;
    manifest.eos = 2;
    add("000000.bin", {1, 300, 301, 1, 302});
    add("000001.bin", {1, 303, 304, 305});
    save();
  }
  void add(const std::string& name, const std::vector<uint32_t>& ids) {
    write_bytes(path + "/" + name, shard_bytes(ids));
    const auto documents = std::count(ids.begin(), ids.end(), 1u);
    manifest.shards.push_back(
        {name, static_cast<int64_t>(ids.size()), documents, sha256_file(path + "/" + name)});
    manifest.tokens += static_cast<int64_t>(ids.size());
    manifest.documents += documents;
  }
  void save() { write_manifest(path + "/manifest.json", manifest); }
};

TEST_CASE("tokens are shown as text by the tokenizer that made them, and by no other") {
  GoodSet set;
  InspectOptions o;
  o.path = set.path;
  o.count = 3;
  o.tokenizer = set.tokenizer;
  const auto slice = inspected(o)[0]["slice"];
  const Tokenizer tokenizer = Tokenizer::open(set.tokenizer);
  CHECK(slice["text"] == tokenizer.decode({300, 301}));
  CHECK(slice["pieces"] == nlohmann::json({"<s>", tokenizer.piece(300), tokenizer.piece(301)}));
  o.tokenizer = set.folder.file("other.model");
  auto settings = llama_settings();
  settings["vocab_size"] = "499";
  write_bytes(o.tokenizer, trained_model(settings));
  const std::string message = error_of(ExitCode::data, [&] { inspected(o); });
  CHECK(contains(message, set.manifest.tokenizer_sha256));
  CHECK(contains(message, "other.model"));
}

TEST_CASE("tokens are shown as text by the tokenizer next to the shards, where none is given") {
  GoodSet set;
  InspectOptions o;
  o.path = set.path;
  o.count = 3;
  const auto shown = inspected(o)[0];
  CHECK(shown["manifest"]["tokenizer"]["file"] == "small.model");
  CHECK(shown["slice"]["text"] == Tokenizer::open(set.tokenizer).decode({300, 301}));
  o.path = set.path + "/000001.bin";
  CHECK(inspected(o)[0]["slice"]["text"] == Tokenizer::open(set.tokenizer).decode({303, 304}));
  o.path = set.path;
  auto settings = llama_settings();
  settings["vocab_size"] = "499";
  write_bytes(set.path + "/small.model", trained_model(settings));
  CHECK(contains(error_of(ExitCode::data, [&] { inspected(o); }), set.manifest.tokenizer_sha256));
  std::filesystem::remove(set.path + "/small.model");
  CHECK_FALSE(inspected(o)[0]["slice"].contains("text"));
  set.manifest.tokenizer_file.clear();
  set.save();
  CHECK(inspected(o)[0]["manifest"]["tokenizer"]["file"].is_null());
}

TEST_CASE("what people read names the same numbers") {
  GoodSet set;
  InspectOptions o;
  o.path = set.path;
  const std::string text = printed([&](std::FILE* out) { inspect(o, out); });
  for (const char* part : {"tokenizer    small.model, vocab 500", "BOS 1", "EOS 2", "000001.bin",
                           "documents    3", "min 2, median 3, mean 3.0, p90 4, max 4"}) {
    INFO(text);
    CHECK(contains(text, part));
  }
}

TEST_CASE("an id that no token is begins no document, and that is said") {
  GoodSet set;
  std::filesystem::remove(set.path + "/manifest.json");
  InspectOptions o;
  o.path = set.path;
  o.document_start = 499;
  const std::string text = printed([&](std::FILE* out) { inspect(o, out); });
  CHECK(contains(text, "documents    0\n             no token is the document start"));
  o.document_start = 1;
  CHECK(contains(printed([&](std::FILE* out) { inspect(o, out); }), "documents    3\n"));
}

/// The lines of a failing verification, then its message.
std::string verify_failure(const std::string& path, const std::string& tokenizer = "") {
  std::string message;
  const std::string lines = printed([&](std::FILE* out) {
    message = error_of(ExitCode::data, [&] { verify(path, tokenizer, out); });
  });
  return lines + message;
}

TEST_CASE("a good set verifies, alone and within the output of tokenize") {
  GoodSet set;
  const std::string lines = printed([&](std::FILE* out) { verify(set.path, set.tokenizer, out); });
  CHECK(contains(lines, "ok   " + set.path + "/000000.bin: 5 tokens, 2 documents"));
  CHECK(contains(lines, "ok   " + set.path + "/000001.bin: 4 tokens, 1 document\n"));
  std::filesystem::rename(set.path, set.folder.file("train"));
  CHECK(contains(printed([&](std::FILE* out) { verify(set.folder.path(), "", out); }),
                 "train/000001.bin"));
}

TEST_CASE("every flipped bit of a shard is found, and the other shard is still checked") {
  GoodSet set;
  const std::string path = set.path + "/000000.bin";
  const std::string good = read_bytes(path);
  for (size_t at : {size_t{0}, size_t{5}, size_t{9}, size_t{600}, size_t{1024}, good.size() - 1}) {
    std::string bad = good;
    bad[at] ^= 1;
    write_bytes(path, bad);
    const std::string found = verify_failure(set.path);
    INFO(found);
    CHECK(contains(found, "BAD  " + path));
    CHECK(contains(found, "ok   " + set.path + "/000001.bin"));
    CHECK(contains(found, "1 mismatch with the manifest"));
  }
}

TEST_CASE("another tokenizer, vocabulary or BOS than the manifest was written with is found") {
  GoodSet set;
  const std::string path = set.path + "/manifest.json", good = read_bytes(path);
  const std::string& hash = set.manifest.tokenizer_sha256;
  const std::string flipped = (hash[0] == '0' ? "1" : "0") + hash.substr(1);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {hash, flipped}, {"\"vocab\": 500", "\"vocab\": 501"}, {"\"bos\": 1", "\"bos\": 0"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    write_bytes(path, bad);
    CHECK(contains(verify_failure(set.path), path + ": digest: mismatch: recorded "));
  }
}

TEST_CASE("sets of older formats are verified and shown, and what could not be checked is said") {
  GoodSet set;
  std::filesystem::remove(set.path + "/small.model");
  const std::string path = set.path + "/manifest.json";
  InspectOptions o;
  o.path = set.path;
  for (const int format : {2, 1}) {
    auto manifest = nlohmann::ordered_json::parse(read_bytes(path));
    manifest["format"] = format;
    manifest["tokenizer"].erase("file");
    manifest.erase("digest");
    if (format == 2) manifest["digest"] = sha256_hex(manifest.dump());
    write_bytes(path, manifest.dump());
    const std::string lines = printed([&](std::FILE* out) { verify(set.path, "", out); });
    CHECK(contains(lines, "note " + path + ": format 1 has no digest of its own") == (format == 1));
    CHECK(contains(lines, "ok   " + set.path + "/000001.bin"));
    CHECK_FALSE(contains(lines, "the tokenizer\n"));
    CHECK(inspected(o)[0]["manifest"]["tokenizer"]["file"].is_null());
    CHECK(contains(printed([&](std::FILE* out) { inspect(o, out); }), "tokenizer    vocab 500,"));
  }
}

TEST_CASE("a tokenizer's file that is damaged or missing is found, and the shards still checked") {
  GoodSet set;
  const std::string path = set.path + "/small.model";
  const std::string lines = printed([&](std::FILE* out) { verify(set.path, "", out); });
  CHECK(contains(lines, "ok   " + path + ": the tokenizer\n"));
  write_bytes(path, read_bytes(path) + "x");
  std::string found = verify_failure(set.path);
  CHECK(contains(found, "BAD  " + path + ": expected SHA-256 " + set.manifest.tokenizer_sha256));
  CHECK(contains(found, "ok   " + set.path + "/000001.bin"));
  std::filesystem::remove(path);
  found = verify_failure(set.path);
  CHECK(contains(found, "BAD  " + path + ": no such file"));
  CHECK(contains(found, "1 mismatch with the manifest"));
}

TEST_CASE("a folder above shards without manifests is answered with their names") {
  GoodSet set;
  std::filesystem::rename(set.path, set.folder.file("train"));
  std::filesystem::remove(set.folder.file("train/manifest.json"));
  const std::string meant = "did you mean " + set.folder.file("train") + "?";
  CHECK(contains(verify_failure(set.folder.path()), meant));
  InspectOptions o;
  o.path = set.folder.path();
  CHECK(contains(error_of(ExitCode::data, [&] { inspected(o); }), meant));
}

TEST_CASE("a truncated, a missing and a surplus shard are found") {
  GoodSet set;
  const std::string path = set.path + "/000001.bin";
  const std::string good = read_bytes(path);
  write_bytes(path, good.substr(0, good.size() - 2));
  CHECK(contains(verify_failure(set.path), "BAD  " + path));
  std::filesystem::remove(path);
  CHECK(contains(verify_failure(set.path), "BAD  " + path));
  write_bytes(path, good);
  write_bytes(set.path + "/._000001.bin", "hidden");  // ignored, so not an extra shard
  CHECK(contains(printed([&](std::FILE* out) { verify(set.path, "", out); }), "ok   " + path));
  write_bytes(set.path + "/000002.bin", good);
  CHECK(contains(verify_failure(set.path), "000002.bin: not in the manifest"));
}

TEST_CASE("wrong counts and ids past the vocabulary are found although the hash is right") {
  SECTION("documents") {
    GoodSet set;
    --set.manifest.shards[0].documents;
    --set.manifest.documents;
    set.save();
    CHECK(contains(verify_failure(set.path), "1 documents, as in the manifest, found 2"));
  }
  SECTION("tokens") {
    GoodSet set;
    ++set.manifest.shards[1].tokens;
    ++set.manifest.tokens;
    set.save();
    CHECK(contains(verify_failure(set.path), "5 tokens, as in the manifest, found 4"));
  }
  SECTION("ids") {
    GoodSet set;
    set.add("000002.bin", {1, 500});
    set.save();
    CHECK(contains(verify_failure(set.path), "500"));
    CHECK(contains(verify_failure(set.path), "BAD  " + set.path + "/000002.bin"));
  }
}

TEST_CASE("another tokenizer and a missing or damaged manifest are found") {
  GoodSet set;
  const std::string other = set.folder.file("other.model");
  auto settings = llama_settings();
  settings["vocab_size"] = "499";
  write_bytes(other, trained_model(settings));
  CHECK(contains(verify_failure(set.path, other), set.manifest.tokenizer_sha256));
  write_bytes(set.path + "/manifest.json", "{");
  CHECK(contains(verify_failure(set.path), "manifest.json"));
  std::filesystem::remove(set.path + "/manifest.json");
  CHECK(contains(verify_failure(set.path), "manifest.json"));
}

TEST_CASE("control characters in names reach no terminal") {
  const TemporaryFolder folder;
  const std::string path = folder.file("\x1b[31mred");
  std::filesystem::create_directory(path);
  TokenizeOptions o = options_for(folder, "a road\n", DocumentKind::line);
  o.output = path + "/out";
  run(o);
  InspectOptions look;
  look.path = o.output;
  const std::string lines = printed([&](std::FILE* out) { verify(o.output, "", out); }) +
                            printed([&](std::FILE* out) { inspect(look, out); }) +
                            describe_set(path, read_manifest(o.output + "/train/manifest.json"));
  CHECK(contains(lines, "ok   "));
  CHECK(contains(lines, "[31mred"));
  CHECK_FALSE(contains(lines, "\x1b"));
}

}  // namespace
}  // namespace bamtrain

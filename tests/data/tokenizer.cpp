#include "data/tokenizer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "core/sha256.h"
#include "files.h"
#include "tokenizers.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("an id outside the vocabulary is refused by name") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  write_bytes(path, trained_model(llama_settings()));
  const Tokenizer tokenizer = Tokenizer::open(path);
  for (int32_t id : {-1, 500, 2'000'000'000}) {
    const std::string message = error_of(ExitCode::data, [&] { tokenizer.decode({5, id}); });
    CHECK(contains(message, std::to_string(id)));
    CHECK(contains(message, "500"));
    error_of(ExitCode::data, [&] { tokenizer.piece(id); });
  }
}

TEST_CASE("what is no model file is refused with its path and a remedy") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  const auto refused = [&](ExitCode code) {
    const std::string message = error_of(code, [&] { Tokenizer::open(path); });
    CHECK(contains(message, path));
    CHECK(contains(message, "; "));
  };
  refused(ExitCode::io);  // missing
  write_bytes(path, "");
  refused(ExitCode::data);
  write_bytes(path, "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\"}}");
  refused(ExitCode::data);
  write_bytes(path, std::string(4096, '\0'));
  refused(ExitCode::data);
  const std::string model = trained_model(llama_settings());
  write_bytes(path, model.substr(0, model.size() / 2));
  refused(ExitCode::data);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  refused(ExitCode::io);
}

TEST_CASE("what is no SentencePiece model is not called one") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& name, const std::string& bytes) {
    write_bytes(folder.file(name), bytes);
    const std::string said = error_of(ExitCode::data, [&] { Tokenizer::open(folder.file(name)); });
    CHECK_FALSE(contains(said, "expected a SentencePiece model, found"));
    return said;
  };
  const std::string whole = read_bytes(golden_path("gpt2.json"));
  // A truncated end, a missing beginning, a byte order mark, a git-lfs pointer, an HTML page.
  CHECK(contains(message("tokenizer.json", whole.substr(0, whole.size() / 2)), "invalid JSON"));
  CHECK(contains(message("tokenizer.json", whole.substr(1000)), "JSON"));
  CHECK(contains(message("tokenizer.json", "\xEF\xBB\xBF" + whole), "byte order mark"));
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n";
  CHECK(contains(message("tokenizer.json", pointer), "invalid JSON"));
  for (const std::string& other : {pointer, std::string("<!DOCTYPE html>\n<html>")}) {
    const std::string said = message("tokenizer.model", other);
    CHECK(contains(said, "expected a SentencePiece model, a tokenizer.json, tiktoken's ranks"));
    CHECK(contains(said, "begins with \"" + other.substr(0, 9)));
  }
}

TEST_CASE("the kind of a tokenizer is told by what is in its file, whatever its name") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t");
  const auto opened = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    CHECK(Tokenizer::begins_like_tokenizer(path));
    Tokenizer t = Tokenizer::open(path);
    CHECK(t.sha256() == sha256_hex(bytes));
    return t;
  };
  CHECK(opened(trained_model(llama_settings())).sentencepiece() != nullptr);
  CHECK(opened(read_bytes(golden_path("gpt2.json"))).byte_pairs() != nullptr);
  CHECK(opened(read_bytes(golden_path("tekken.json"))).byte_pairs() != nullptr);
  CHECK(opened("\n " + read_bytes(golden_path("gpt2.json"))).byte_pairs() != nullptr);
  for (const std::string other : {"", "text", "{\"format\": \"bamtrain\"}", "IQ== x\n"}) {
    write_bytes(path, other);
    CHECK_FALSE(Tokenizer::begins_like_tokenizer(path));
  }
}

}  // namespace
}  // namespace bamtrain

#include "data/tiktoken_file.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "data/tokenizer.h"
#include "files.h"
#include "tokenizers.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;
using Json = nlohmann::json;

std::string message_of(const std::string& path) {
  return error_of(ExitCode::data, [&] { Tokenizer::open(path); });
}

TEST_CASE("ranks other than the published ones do not say how text is split: refused") {
  const TemporaryFolder folder;
  write_bytes(folder.file("t.tiktoken"), "IQ== 0\nIg== 1\n");
  const std::string message = message_of(folder.file("t.tiktoken"));
  CHECK(message.find("cl100k_base") != std::string::npos);
  CHECK(message.find("tokenizer.json") != std::string::npos);
  // CRLF line endings are accepted too.
  write_bytes(folder.file("t.tiktoken"), "IQ== 0\r\nIg== 1\r\n");
  CHECK(message_of(folder.file("t.tiktoken")) == message);
}

TEST_CASE("published ranks have their special tokens, and ids between them that nothing has") {
  const std::string path = shared_data("tokenizer/tiktoken/cl100k_base.tiktoken");
  if (path.empty()) return;
  const Tokenizer tokenizer = Tokenizer::open(path);
  CHECK(tokenizer.vocab() == 100277);
  CHECK(tokenizer.bos() == 100257);
  CHECK(tokenizer.eos() == 100257);
  CHECK(tokenizer.piece(100276) == "<|endofprompt|>");
  CHECK(tokenizer.kind(100265) == TokenKind::unused);
  CHECK(tokenizer.bytes(100265, false).empty());
  const TemporaryFolder folder;
  std::string bytes = read_bytes(path), with_returns;
  for (const char c : bytes) with_returns += c == '\n' ? "\r\n" : std::string(1, c);
  write_bytes(folder.file("crlf.tiktoken"), with_returns);
  CHECK(Tokenizer::begins_like_tokenizer(folder.file("crlf.tiktoken")));
  const std::string text = "The naïve café owner's 12,345 résumés\r\n\n  人工智能";
  CHECK(Tokenizer::open(folder.file("crlf.tiktoken")).encode(text) == tokenizer.encode(text));
  // One flipped bit makes it a different file.
  bytes[bytes.size() / 2] ^= 1;
  write_bytes(folder.file("t.tiktoken"), bytes);
  CHECK(message_of(folder.file("t.tiktoken")).find("the published ranks") != std::string::npos);
}

TEST_CASE("a damaged tekken.json is refused, with its place") {
  const Json good = golden("tekken.json");
  const TemporaryFolder folder;
  const std::string path = folder.file("tekken.json");
  const auto refused = [&](const std::string& what, const std::function<void(Json*)>& change) {
    INFO(what);
    Json file = good;
    change(&file);
    write_bytes(path, file.dump());
    CHECK(message_of(path).find(what) != std::string::npos);
  };
  refused("vocab: 7", [](Json* f) { (*f)["vocab"][7]["token_bytes"] = "?"; });
  refused("vocab: 7: expected rank 7", [](Json* f) { (*f)["vocab"][7]["rank"] = 8; });
  refused("vocab: 300: expected unique bytes",
          [](Json* f) { (*f)["vocab"][300]["token_bytes"] = (*f)["vocab"][299]["token_bytes"]; });
  refused("540 tokens", [](Json* f) { (*f)["vocab"].get_ref<Json::array_t&>().resize(100); });
  refused("default_num_special_tokens",
          [](Json* f) { (*f)["config"]["default_num_special_tokens"] = 2; });
  refused("pattern", [](Json* f) { (*f)["config"].erase("pattern"); });
  refused("\\w", [](Json* f) { (*f)["config"]["pattern"] = "\\w+"; });
}

}  // namespace
}  // namespace bamtrain

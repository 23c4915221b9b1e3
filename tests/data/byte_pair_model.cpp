#include "data/byte_pair_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "data/tokenizer.h"
#include "files.h"
#include "tokenizers.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;
using Json = nlohmann::json;

TEST_CASE("byte-level BPEs of every form have the ids of the libraries that read them") {
  const Json all = golden("golden.json");
  const auto texts = all["texts"].get<std::vector<std::string>>();
  for (const auto& [name, ids] : all["ids"].items()) {
    INFO(name);
    const Tokenizer tokenizer = Tokenizer::open(golden_path(name + ".json"));
    REQUIRE(tokenizer.byte_pairs() != nullptr);
    CHECK(tokenizer.is_exact() == (name == "gpt2" || name == "digits" || name == "tekken"));
    Tokenizer::Cache cache;
    for (size_t n = 0; n < texts.size(); ++n) {
      INFO(n << ": " << texts[n]);
      const auto expected = ids[n].get<std::vector<int32_t>>();
      REQUIRE(tokenizer.encode(texts[n]) == expected);
      for (const int time : {1, 2}) {  // the second time from the cache
        INFO(time);
        REQUIRE(encode_cached(tokenizer, texts[n], &cache) == expected);
      }
      REQUIRE(tokenizer.decode(expected) == bytes_of(tokenizer, expected));
      if (tokenizer.is_exact()) REQUIRE(tokenizer.decode(expected) == texts[n]);
    }
  }
}

TEST_CASE("long pieces are merged as short ones are: by a queue or by looking, the same ids") {
  // Without a pattern, the whole text is one pre-token. It is also merged by the definition: lowest
  // rank first, leftmost first.
  Json file = golden("gpt2.json");
  file["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const TemporaryFolder folder;
  write_bytes(folder.file("t.json"), file.dump());
  const Tokenizer tokenizer = Tokenizer::open(folder.file("t.json"));
  const auto& merges = tokenizer.byte_pairs()->definition().merges;
  const auto by_definition = [&](const std::string& text) {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(tokenizer.encode(std::string(1, c)).at(0));
    for (const auto& m : merges) {
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        if (ids[i] != m.left || ids[i + 1] != m.right) continue;
        ids[i] = m.result;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    return ids;
  };
  const Rng rng(5, "test.byte_pair_model");
  const std::string sentences = "the other mother, another brother; in the weather there: ether";
  uint64_t draw = 0;
  for (size_t n = 1; n < 400; ++n) {
    std::string text;
    while (text.size() < n) text += sentences[rng.below(draw++, sentences.size())];
    if (n % 3 == 0) text = std::string(n, "the r"[n % 5]);
    INFO(text);
    REQUIRE(tokenizer.encode(text) == by_definition(text));
  }
  const std::string million(1'000'000, 'e');
  CHECK((tokenizer.decode(tokenizer.encode(million)) == million));
}

TEST_CASE("bytes that are no UTF-8 stay what they are, beside text that has its ids") {
  const Tokenizer tokenizer = Tokenizer::open(golden_path("gpt2.json"));
  for (const std::string bad : {"\xFF", "\xC3", "\xED\xA0\x80", "\xF0\x9F\x98", "\x80\x80"}) {
    std::vector<int32_t> expected = tokenizer.encode("the other");
    const std::vector<int32_t> alone = tokenizer.encode(bad), behind = tokenizer.encode(" there");
    CHECK(bytes_of(tokenizer, alone) == bad);
    expected.insert(expected.end(), alone.begin(), alone.end());
    expected.insert(expected.end(), behind.begin(), behind.end());
    CHECK(tokenizer.encode("the other" + bad + " there") == expected);
  }
}

TEST_CASE("BOS, EOS and padding are those of the template, or of the names in use") {
  const Tokenizer gpt2 = Tokenizer::open(golden_path("gpt2.json"));
  CHECK(gpt2.piece(gpt2.bos()) == "<|endoftext|>");
  CHECK(gpt2.eos() == gpt2.bos());
  CHECK(gpt2.pad() == -1);
  CHECK(gpt2.unknown() == -1);
  CHECK(gpt2.bytes(gpt2.bos(), true).empty());
  CHECK(gpt2.decode({gpt2.bos()}).empty());
  const Tokenizer digits = Tokenizer::open(golden_path("digits.json"));
  CHECK(digits.piece(digits.bos()) == "<s>");
  CHECK(digits.piece(digits.eos()) == "</s>");
  const Tokenizer tekken = Tokenizer::open(golden_path("tekken.json"));
  CHECK(tekken.bos() == 1);
  CHECK(tekken.eos() == 2);
  CHECK(tekken.vocab() == 550);
}

TEST_CASE("pieces are spelled as their file has them") {
  const Tokenizer tokenizer = Tokenizer::open(golden_path("gpt2.json"));
  const std::vector<int32_t> ids = tokenizer.encode(" the\n");
  CHECK(tokenizer.piece(ids.at(0)) == "Ġthe");
  CHECK(tokenizer.piece(ids.at(1)) == "Ċ");
  CHECK(tokenizer.kind(ids.at(0)) == TokenKind::normal);
  CHECK(tokenizer.kind(tokenizer.bos()) == TokenKind::control);
}

}  // namespace
}  // namespace bamtrain

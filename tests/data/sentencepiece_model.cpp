#include "data/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/rng.h"
#include "core/sha256.h"
#include "data/tokenizer.h"
#include "files.h"
#include "tokenizers.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

/// SentencePiece's own ids of the whole text: the expected result everywhere.
class Oracle {
 public:
  explicit Oracle(const std::string& path) { REQUIRE(processor_.Load(path).ok()); }
  std::vector<int32_t> encode(const std::string& text) const {
    std::vector<int> ids;
    REQUIRE(processor_.Encode(text, &ids).ok());
    return {ids.begin(), ids.end()};
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

/// Consecutive lines of about 3,000 bytes or more in total: texts with newlines.
std::vector<std::string> passages(const std::string& text) {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find("\n", std::min(text.size(), at + 3000));
    end = end == std::string::npos ? text.size() : end + 1;
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

/// Random characters that make cuts, merges and byte fallbacks likely.
std::string random_text(const Rng& rng, uint64_t* counter) {
  static const std::vector<std::string> alphabet = {" ",
                                                    "  ",
                                                    "   ",
                                                    "a",
                                                    "e",
                                                    "t",
                                                    "h",
                                                    "the",
                                                    " the",
                                                    "ing",
                                                    "er",
                                                    "ou",
                                                    "A",
                                                    "Z",
                                                    "1",
                                                    "9",
                                                    "00",
                                                    "\n",
                                                    "\n\n",
                                                    "\t",
                                                    "\r\n",
                                                    ".",
                                                    ",",
                                                    "...",
                                                    "-",
                                                    "<unk>",
                                                    "<s>",
                                                    "(",
                                                    ")",
                                                    "=",
                                                    "é",
                                                    "ß",
                                                    "ё",
                                                    "日",
                                                    "本",
                                                    "語",
                                                    "한",
                                                    "🎉",
                                                    "👩‍🚀",
                                                    "\u0301",
                                                    "\u2581",
                                                    " \u2581",
                                                    "\u2581 ",
                                                    "\u00a0",
                                                    "\u2003",
                                                    "\x01",
                                                    "\x01\x01",
                                                    "[INST]",
                                                    "_",
                                                    "\x7f",
                                                    std::string(1, '\0'),
                                                    "erererererererer"};
  std::string text;
  const uint64_t length = rng.below((*counter)++, 40);
  for (uint64_t i = 0; i < length; ++i) text += alphabet[rng.below((*counter)++, alphabet.size())];
  return text;
}

void check_random_texts(const std::string& model_path) {
  const Tokenizer tokenizer = Tokenizer::open(model_path);
  const Oracle oracle(model_path);
  Tokenizer::Cache cache;
  const Rng rng(1, "test.tokenizer");
  uint64_t counter = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random_text(rng, &counter);
    INFO(text);
    const std::vector<int32_t> expected = oracle.encode(text);
    REQUIRE(tokenizer.encode(text) == expected);
    for (int time : {1, 2}) {  // the second time from the cache
      INFO(time);
      REQUIRE(encode_cached(tokenizer, text, &cache) == expected);
    }
    if (tokenizer.is_exact()) {
      REQUIRE(bytes_of(tokenizer, expected) == tokenizer.decode(expected));
    }
    if (text.find("\u2581") == std::string::npos && tokenizer.is_exact()) {
      REQUIRE(tokenizer.decode(expected) == text);
    }
  }
}

TEST_CASE("cut text has the ids of whole text: real prose, three Mistral tokenizers") {
  for (const std::string name : {"mistral-7b-v0.3", "mixtral-8x22b", "mistral-7b-v0.1"}) {
    const std::string model = shared_data("tokenizer/" + name + ".model");
    if (model.empty()) return;
    const Tokenizer tokenizer = Tokenizer::open(model);
    CHECK(tokenizer.is_exact());
    const Oracle oracle(model);
    Tokenizer::Cache cache;
    for (const char* file :
         {"tinyshakespeare.txt", "wikitext-2/valid.txt", "eval/lambada_test.jsonl"}) {
      const std::string path = shared_data(file);
      if (path.empty()) return;
      for (const std::string& text : passages(read_bytes(path).substr(0, 600'000))) {
        const std::vector<int32_t> ids = encode_cached(tokenizer, text, &cache);
        REQUIRE(ids == oracle.encode(text));
        REQUIRE(tokenizer.decode(ids) == text);
      }
    }
  }
}

TEST_CASE("cut text has the ids of whole text: random characters, Mistral's tokenizers") {
  for (const std::string name : {"mistral-7b-v0.3", "mistral-7b-v0.1"}) {
    const std::string model = shared_data("tokenizer/" + name + ".model");
    if (!model.empty()) check_random_texts(model);
  }
}

TEST_CASE("cut text has the ids of whole text: random characters, small trained tokenizers") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  SECTION("with a leading space") { write_bytes(path, trained_model(llama_settings())); }
  SECTION("without a leading space") {
    auto settings = llama_settings();
    settings["add_dummy_prefix"] = "false";
    write_bytes(path, trained_model(settings));
  }
  SECTION("with symbols of the user's that hold spaces and newlines") {
    auto settings = llama_settings();
    settings["user_defined_symbols"] = "\n\n,e t,[INST],\u2581\u2581\u2581";
    write_bytes(path, trained_model(settings));
  }
  CHECK(Tokenizer::open(path).is_exact());
  check_random_texts(path);
}

TEST_CASE("a model that normalises, or has no byte fallback, is encoded whole") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  SECTION("nfkc") {
    auto settings = llama_settings();
    settings["normalization_rule_name"] = "nfkc";
    write_bytes(path, trained_model(settings));
  }
  SECTION("spaces squeezed") {
    auto settings = llama_settings();
    settings["remove_extra_whitespaces"] = "true";
    write_bytes(path, trained_model(settings));
  }
  SECTION("no byte fallback") {
    auto settings = llama_settings();
    settings["byte_fallback"] = "false";
    settings["vocab_size"] = "300";
    write_bytes(path, trained_model(settings));
  }
  SECTION("unigram") {
    auto settings = llama_settings();
    settings["model_type"] = "unigram";
    settings["vocab_size"] = "400";
    settings["hard_vocab_limit"] = "false";
    write_bytes(path, trained_model(settings));
  }
  CHECK_FALSE(Tokenizer::open(path).is_exact());
  check_random_texts(path);
}

TEST_CASE("a model that is encoded whole has long text cut behind a newline") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  auto settings = llama_settings();
  settings["normalization_rule_name"] = "nfkc";
  write_bytes(path, trained_model(settings));
  const Oracle oracle(path);
  const size_t limit = SentencePieceModel::kLongestStretch;
  const std::string first = std::string(limit - 10, ' ') + "road\n";
  const std::string second = std::string(20, 'a') + "\nhills";
  std::vector<int32_t> expected = oracle.encode(first);
  const std::vector<int32_t> rest = oracle.encode(second);
  expected.insert(expected.end(), rest.begin(), rest.end());
  CHECK(Tokenizer::open(path).encode(first + second) == expected);
}

TEST_CASE("a stretch without a place to cut is cut at its longest length, and only there") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  write_bytes(path, trained_model(llama_settings()));
  const Tokenizer tokenizer = Tokenizer::open(path);
  const Oracle oracle(path);
  const size_t limit = SentencePieceModel::kLongestStretch;
  std::string run;  // "er" and "re" occur in tokens, so no cut inside "ererer..." is safe
  while (run.size() < limit + 101) run += "er";
  const std::string text = "\n" + run + "\nroad";
  // No token contains a newline, so text after a newline has the same ids as inside a longer text.
  const size_t lead = oracle.encode("\n").size();
  std::vector<int32_t> expected = oracle.encode("\n");
  for (const std::string& part : {run.substr(0, limit), run.substr(limit) + "\nroad"}) {
    const std::vector<int32_t> ids = oracle.encode("\n" + part);
    expected.insert(expected.end(), ids.begin() + static_cast<std::ptrdiff_t>(lead), ids.end());
  }
  const std::vector<int32_t> ids = tokenizer.encode(text);
  CHECK((ids == expected));  // in parentheses: not printed
  CHECK((tokenizer.decode(ids) == text));
}

TEST_CASE("a cache that was filled by much other text gives the same ids") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  write_bytes(path, trained_model(llama_settings()));
  const Tokenizer tokenizer = Tokenizer::open(path);
  Tokenizer::Cache cache;
  const Rng rng(2, "test.tokenizer");
  for (uint64_t i = 0; i < 300'000; ++i) {  // more words than the cache has slots
    std::string word = " ";
    for (uint64_t v = rng.bits(i % 200'000); v > 7; v /= 64) {
      word += static_cast<char>('a' + v % 26);
    }
    if (i % 50 != 0) {
      encode_cached(tokenizer, word, &cache);
    } else {
      REQUIRE(encode_cached(tokenizer, word, &cache) == tokenizer.encode(word));
    }
  }
}

TEST_CASE("threads share a tokenizer and a cache of few slots, and get the ids of one") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  write_bytes(path, trained_model(llama_settings()));
  const Tokenizer tokenizer = Tokenizer::open(path);
  std::vector<std::vector<int32_t>> expected;
  for (const std::string& s : sample_sentences()) expected.push_back(tokenizer.encode(s));
  // With one slot or eight, every stretch evicts another's, mostly while that is being read.
  for (const size_t slots : {1, 8, 4096}) {
    Tokenizer::Cache cache(slots);
    std::vector<int64_t> wrong(4, 0);
    std::vector<std::thread> threads;
    for (int64_t& mine : wrong) {
      threads.emplace_back([&] {
        for (int round = 0; round < 10; ++round) {
          for (size_t i = 0; i < expected.size(); ++i) {
            mine += encode_cached(tokenizer, sample_sentences()[i], &cache) != expected[i];
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int64_t>(4, 0));
  }
}

TEST_CASE("Mistral's tokenizer has its known vocabulary, BOS, EOS and hash, unlike Mixtral's") {
  const std::string mistral = shared_data("tokenizer/mistral-7b-v0.3.model");
  const std::string mixtral = shared_data("tokenizer/mixtral-8x22b.model");
  if (mistral.empty() || mixtral.empty()) return;
  const Tokenizer a = Tokenizer::open(mistral), b = Tokenizer::open(mixtral);
  CHECK(a.vocab() == 32768);
  CHECK(a.bos() == 1);
  CHECK(a.eos() == 2);
  CHECK(a.sha256().substr(0, 8) == "37f00374");
  CHECK(a.sha256() == sha256_file(mistral));
  CHECK(b.vocab() == a.vocab());
  CHECK(b.sha256() != a.sha256());
}

TEST_CASE("no text has no ids, and control ids have no text") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  write_bytes(path, trained_model(llama_settings()));
  const Tokenizer tokenizer = Tokenizer::open(path);
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.decode({}).empty());
  CHECK(tokenizer.vocab() == 500);
  CHECK(tokenizer.piece(tokenizer.bos()) == "<s>");
  CHECK(tokenizer.decode({tokenizer.bos(), tokenizer.eos()}).empty());
  CHECK(tokenizer.piece(3) == "<0x00>");
}

TEST_CASE("a model with any one damaged byte is refused or opens, and never ends the process") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.model");
  const std::string model = trained_model(llama_settings());
  const std::string text = "Every winter described 3 maps\n of \u00e9 the coast";
  int opened = 0, refused = 0;
  const Rng rng(3, "test.tokenizer");
  for (uint64_t i = 0; i < 400; ++i) {
    // A third of the draws damage the end, where the specification messages are.
    const size_t from = i % 3 == 0 ? model.size() - std::min<size_t>(model.size(), 500) : 0;
    const size_t at = from + rng.below(2 * i, model.size() - from);
    std::string damaged = model;
    damaged[at] = static_cast<char>(rng.bits(2 * i + 1));
    if (i % 4 == 3) damaged.resize(at);
    write_bytes(path, damaged);
    try {
      const Tokenizer tokenizer = Tokenizer::open(path);
      tokenizer.decode(tokenizer.encode(text));
      ++opened;
    } catch (const Error& e) {
      CHECK(static_cast<int>(e.code()) == static_cast<int>(ExitCode::data));
      ++refused;
    }
  }
  CHECK(opened > 0);
  CHECK(refused > 0);
}

}  // namespace
}  // namespace bamtrain

#include "data/huggingface_tokenizer.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "data/tokenizer.h"
#include "files.h"
#include "tokenizers.h"

namespace bamtrain {
namespace {

using namespace testing;
using Json = nlohmann::json;

TEST_CASE("a tokenizer.json that asks for what is not done is refused by that name") {
  const TemporaryFolder folder;
  const std::string path = folder.file("tokenizer.json");
  const auto refused = [&](const std::string& what, const std::function<void(Json*)>& change) {
    INFO(what);
    Json file = golden("qwen.json");
    change(&file);
    write_bytes(path, file.dump());
    try {
      Tokenizer::open(path);
      FAIL("it is taken");
    } catch (const Error& e) {
      INFO(e.what());
      CHECK(e.code() == ExitCode::data);
      CHECK(std::string(e.what()).find(path) != std::string::npos);
      CHECK(std::string(e.what()).find(what) != std::string::npos);
    }
  };
  refused("WordPiece", [](Json* f) { (*f)["model"]["type"] = "WordPiece"; });
  refused("NFKC", [](Json* f) { (*f)["normalizer"] = {{"type", "NFKC"}}; });
  refused("Lowercase", [](Json* f) {
    (*f)["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}};
  });
  refused("Metaspace", [](Json* f) { (*f)["pre_tokenizer"] = {{"type", "Metaspace"}}; });
  refused("found null", [](Json* f) { (*f)["pre_tokenizer"] = nullptr; });
  refused("Punctuation", [](Json* f) {
    (*f)["pre_tokenizer"]["pretokenizers"][0] = {{"type", "Punctuation"}};
  });
  refused("behavior: expected Isolated, found Removed",
          [](Json* f) { (*f)["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; });
  refused("invert", [](Json* f) { (*f)["pre_tokenizer"]["pretokenizers"][0]["invert"] = true; });
  refused("add_prefix_space",
          [](Json* f) { (*f)["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; });
  refused("byte_fallback", [](Json* f) { (*f)["model"]["byte_fallback"] = true; });
  refused("dropout", [](Json* f) { (*f)["model"]["dropout"] = 0.1; });
  refused("end_of_word_suffix", [](Json* f) { (*f)["model"]["end_of_word_suffix"] = "</w>"; });
  refused("a token for each byte", [](Json* f) {
    (*f)["model"]["vocab"].erase("!");
    (*f)["model"]["merges"] = Json::array();
  });
  refused("an id of its own", [](Json* f) { (*f)["model"]["vocab"]["!"] = 5; });
  refused("tokens of the vocabulary", [](Json* f) {
    (*f)["model"]["merges"][3] = {"nowhere", "x"};
  });
  refused("a pair of tokens", [](Json* f) { (*f)["model"]["merges"][3] = "one"; });
  refused("lstrip", [](Json* f) {
    (*f)["added_tokens"].push_back(
        {{"id", 600}, {"content", "x"}, {"special", false}, {"lstrip", true}});
  });
  refused("a special token", [](Json* f) {
    (*f)["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", {{{"SpecialToken", {{"id", "[CLS]"}, {"type_id", 0}}}}}}};
  });
  refused("\"model\"", [](Json* f) { f->erase("model"); });
}

TEST_CASE("merges are pairs, or words with a space between in older files") {
  const TemporaryFolder folder;
  Json file = golden("gpt2.json");
  write_bytes(folder.file("pairs.json"), file.dump());
  for (Json& m : file["model"]["merges"]) {
    m = m[0].get<std::string>() + " " + m[1].get<std::string>();
  }
  write_bytes(folder.file("words.json"), file.dump());
  const std::string text = "another mother's weather, in 1998";
  CHECK(Tokenizer::open(folder.file("pairs.json")).encode(text) ==
        Tokenizer::open(folder.file("words.json")).encode(text));
}

TEST_CASE("a Split by a string cuts that string out") {
  const TemporaryFolder folder;
  Json file = golden("qwen.json");
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", "(.+)"}};
  write_bytes(folder.file("t.json"), file.dump());
  const Tokenizer tokenizer = Tokenizer::open(folder.file("t.json"));
  std::vector<int32_t> expected;
  for (const char* part : {"the", "(.+)", "other"}) {
    const auto ids = tokenizer.encode(part);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  CHECK(tokenizer.encode("the(.+)other") == expected);
}

}  // namespace
}  // namespace bamtrain

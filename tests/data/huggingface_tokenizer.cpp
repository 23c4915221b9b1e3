#include "data/huggingface_tokenizer.h"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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
  refused("a unique id", [](Json* f) { (*f)["model"]["vocab"]["!"] = 5; });
  refused("tokens of the vocabulary", [](Json* f) {
    (*f)["model"]["merges"][3] = {"nowhere", "x"};
  });
  refused("a pair of tokens", [](Json* f) { (*f)["model"]["merges"][3] = "one"; });
  // A repeated merge: once as a pair, once as a string.
  refused("merges: 300: expected each merge once, found \"h e\" twice", [](Json* f) {
    f->at("model").at("merges").at(300) = Json::array({"h", "e"});
  });
  refused("expected each merge once", [](Json* f) {
    Json& merges = f->at("model").at("merges");
    merges.push_back(merges[0][0].get<std::string>() + " " + merges[0][1].get<std::string>());
  });
  const auto added = [](int id, const std::string& content) {
    return Json{{"id", id}, {"content", content}, {"special", false}};
  };
  refused("expected the id 600 that x-x has, found 601", [&](Json* f) {
    (*f)["added_tokens"].push_back(added(600, "x-x"));
    (*f)["added_tokens"].push_back(added(601, "x-x"));
  });
  refused("expected a unique id, found 600, the id of x-x", [&](Json* f) {
    (*f)["added_tokens"].push_back(added(600, "x-x"));
    (*f)["added_tokens"].push_back(added(600, "y-y"));
  });
  refused("expected a unique id, found 5, the id of %",
          [&](Json* f) { (*f)["added_tokens"].push_back(added(5, "x-x")); });
  refused("String: expected a text", [](Json* f) {
    (*f)["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", ""}};
  });
  refused("lstrip", [](Json* f) {
    (*f)["added_tokens"].push_back(
        {{"id", 600}, {"content", "x-x"}, {"special", false}, {"lstrip", true}});
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

// The ids are from Hugging Face's tokenizers 0.23.3.
TEST_CASE("a Split at places of no width cuts there") {
  const TemporaryFolder folder;
  Json file = golden("qwen.json");
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"Regex", R"((?=(\p{L}{3})+(?!\p{L})))"}};
  write_bytes(folder.file("t.json"), file.dump());
  const Tokenizer tokenizer = Tokenizer::open(folder.file("t.json"));
  CHECK(tokenizer.encode("another mother's weather") ==
        std::vector<int32_t>{65, 378, 84, 257, 82, 221, 77, 79, 84, 257, 82, 279, 263, 69, 281, 257,
                             82});
  CHECK(tokenizer.encode("the then 123 there") ==
        std::vector<int32_t>{258, 292, 257, 78, 221, 17, 18, 19, 292, 72, 69, 262});
}

TEST_CASE("digits grouped from the right have the ids of the library that made the tokenizer") {
  for (const char* name : {"zero-width-lookahead", "zero-width-numbers-then-lookahead"}) {
    const std::string path =
        golden_path("") + "../../../../shared/cases/" + name + ".tokenizer.json";
    if (!std::filesystem::exists(path)) {
      std::printf("skipped: %s is not there\n", path.c_str());
      continue;
    }
    const Tokenizer tokenizer = Tokenizer::open(path);
    CHECK(tokenizer.encode("1234") == std::vector<int32_t>{16, 17, 257});
    CHECK(tokenizer.encode("1234567 and 12") ==
          std::vector<int32_t>{16, 17, 257, 20, 21, 22, 220, 64, 77, 67, 220, 256});
    CHECK(tokenizer.encode("x 123456é1") ==
          std::vector<int32_t>{87, 220, 256, 18, 19, 20, 21, 127, 102, 16});
  }
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

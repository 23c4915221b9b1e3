#include "export/byte_pair_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "data/byte_pair_model.h"
#include "data/tokenizers.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("a byte-level BPE that is written and read again has the ids of the library") {
  const auto all = golden("golden.json");
  const auto texts = all["texts"].get<std::vector<std::string>>();
  const TemporaryFolder written;
  for (const auto& [name, ids] : all["ids"].items()) {
    for (const bool adds_bos : {false, true}) {
      INFO(name << ", " << adds_bos);
      const Tokenizer original = Tokenizer::open(golden_path(name + ".json"));
      const nlohmann::ordered_json json = byte_pair_json(original, adds_bos);
      write_bytes(written.file("t.json"), json.dump());
      const Tokenizer again = Tokenizer::open(written.file("t.json"));
      for (size_t n = 0; n < texts.size(); ++n) {
        INFO(texts[n]);
        REQUIRE(again.encode(texts[n]) == ids[n].get<std::vector<int32_t>>());
      }
      // The library reads the ids of added tokens only from the vocabulary.
      for (const auto& token : json["added_tokens"]) {
        CHECK(json["model"]["vocab"][token["content"].get<std::string>()] == token["id"]);
      }
      CHECK(again.bos() == original.bos());
      CHECK(again.eos() == original.eos());
      CHECK(again.vocab() == original.vocab());
      CHECK(json["post_processor"]["single"].size() == (adds_bos ? 2 : 1));
    }
  }
}

}  // namespace
}  // namespace bamtrain

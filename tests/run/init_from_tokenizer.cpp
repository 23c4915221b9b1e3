// A run does not silently continue training weights with the ids of a different tokenizer.

#include "run/init_from_tokenizer.h"

#include <filesystem>

#include "core/error.h"
#include "data/files.h"
#include "data/manifest.h"
#include "train/trained_text.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;

/// A run on text, and shards of the same text from another tokenizer.
struct TwoTokenizers {
  TextRun text;
  std::string checkpoint = text.train(1), exported = text.w.path("hf");

  TwoTokenizers() {
    auto settings = llama_settings();
    settings["vocab_size"] = "480";
    write_bytes(text.w.path("other.model"), trained_model(settings));
    const char* build = std::getenv("BAMTRAIN_BUILD");
    run_well({std::string(build ? build : "build") + "/data_tools/bamdata", "tokenize",
              "--document", "blank-line", "--tokenizer", text.w.path("other.model"), "--output",
              text.w.path("other"), text.w.path("text.txt")});
    run_well({bamtrain_program(), "export", "--checkpoint", checkpoint, "--output", exported});
  }

  static void run_well(const std::vector<std::string>& command) {
    const Outcome o = run(command, threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
  }

  Outcome next(const std::string& folder, std::vector<std::string> more, bool dry = false) {
    fs::remove_all(text.w.path("next"));
    text.config["out_dir"] = text.w.path("next");
    more.push_back("init_from.folder=" + folder);
    std::vector<std::string> command =
        bamtrain_command(write_config(text.w, "next.json", text.config), more);
    if (dry) command.push_back("--dry-run");
    return run(command, threads(1));
  }
  std::vector<std::string> of_other() const {
    return {"data.train=" + text.w.path("other/train"), "data.val="};
  }
};

}  // namespace

TEST_CASE("shards of another tokenizer than the weights' are refused, unless that is asked for") {
  TwoTokenizers t;
  const auto sha256_of = [&](const char* folder) {
    return read_manifest(t.text.w.path(folder) + "/manifest.json").tokenizer_sha256;
  };
  const std::string trained = sha256_of("data/train"), other = sha256_of("other/train");
  REQUIRE(trained != other);
  for (const std::string& folder : {t.checkpoint, t.exported}) {
    const Outcome same = t.next(folder, {});
    INFO(same.output);
    CHECK(same.code == 0);
    CHECK(same.output.find("warning") == std::string::npos);
    for (const bool dry : {false, true}) {
      const Outcome o = t.next(folder, t.of_other(), dry);
      INFO(o.output);
      CHECK(o.code == static_cast<int>(ExitCode::data));
      for (const std::string& part :
           {"data.train: expected shards of the tokenizer of " + folder, trained, other,
            std::string("set init_from.tokenizer to \"any\"")}) {
        CHECK(o.output.find(part) != std::string::npos);
      }
      CHECK_FALSE(fs::exists(t.text.w.path("next")));
    }
    std::vector<std::string> any = t.of_other();
    any.emplace_back("init_from.tokenizer=any");
    const Outcome o = t.next(folder, any);
    INFO(o.output);
    CHECK(o.code == 0);
  }
  for (const char* name : {"tokenizer.model", "tokenizer.json", "tokenizer_config.json"}) {
    fs::remove(t.exported + "/" + name);
  }
  const Outcome o = t.next(t.exported, t.of_other());
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("warning: " + t.exported + ": names no tokenizer") != std::string::npos);
}

namespace {

/// The config of a run on shards whose tokenizer has 500 ids. It starts from a folder that holds
/// what the test writes there.
struct FolderOnly {
  TextRun text;
  RunConfig c;
  std::vector<std::string> told;

  FolderOnly() {
    c.model.vocab = 512;
    c.data.train = DataSources(text.w.path("data/train"));
    c.init_from.folder = text.w.path("hf");
    fs::create_directories(c.init_from.folder);
  }
  void write(const std::string& name, const std::string& bytes) {
    write_bytes(c.init_from.folder + "/" + name, bytes);
  }
  std::string refusal() {
    told.clear();
    return error_or_none(ExitCode::data, [this] {
      check_init_from_tokenizer(c, [this](const std::string& text) { told.push_back(text); });
    });
  }
  bool refuses(const std::string& words) {
    const std::string text = refusal();
    INFO(text);
    return text.find(words) != std::string::npos && told.empty();
  }
  std::string sha256() const {
    return read_manifest(text.w.path("data/train/manifest.json")).tokenizer_sha256;
  }
};

/// A byte-level BPE tokenizer.json with `ids` ids.
std::string byte_level(int ids) {
  nlohmann::json vocab;
  for (int id = 0; id < ids; ++id) vocab["t" + std::to_string(id)] = id;
  return nlohmann::json{{"model", {{"type", "BPE"}, {"vocab", vocab}}}}.dump();
}

/// As export wrote it before it included the digest.
const char* const kEarlierConfig = R"({"tokenizer_class": "PreTrainedTokenizerFast",
    "add_bos_token": false, "add_eos_token": false, "clean_up_tokenization_spaces": false,
    "split_special_tokens": true, "padding_side": "left", "pad_token": "<|endoftext|>"})";

}  // namespace

TEST_CASE("a tokenizer.json of another program is refused where the shards are of another") {
  FolderOnly f;
  f.write("tokenizer.json", byte_level(500));
  CHECK(f.refuses("data.train: expected shards of the tokenizer of "));
  f.write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  CHECK(f.refuses("data.train: expected shards of the tokenizer of "));
}

TEST_CASE("a tokenizer.json that export has written anew says of which file it is") {
  FolderOnly f;
  f.write("tokenizer.json", byte_level(500));
  f.write("tokenizer_config.json", "{\"tokenizer_sha256\": \"" + f.sha256() + "\"}");
  CHECK(f.refusal().empty());
  CHECK(f.told.empty());
}

TEST_CASE(
    "an export of before it said of which file its tokenizer.json is, is compared as it can") {
  FolderOnly f;
  f.write("tokenizer_config.json", kEarlierConfig);
  f.write("tokenizer.json", byte_level(500));
  CHECK(f.refusal().empty());
  REQUIRE(f.told.size() == 1);
  CHECK(f.told[0].find(
            "hf: names no SHA-256 of its tokenizer, so the token ids of data.train are ") !=
        std::string::npos);
  f.write("tokenizer.json", byte_level(480));
  CHECK(f.refuses("hf, which has 480 ids, found shards of one with 500; tokenize"));
  const auto card = [](const std::string& sha256) {
    return "# A model\n| | |\n|---|---|\n| steps | 3 of 3 |\n| tokenizer | byte-level BPE, 500 "
           "pieces: `cl100k.tiktoken`, SHA-256 `" +
           sha256 + "` |\n";
  };
  f.write("tokenizer.json", byte_level(500));
  f.write("README.md", card(std::string(64, 'a')));
  CHECK(f.refuses(std::string(64, 'a')));
  f.write("README.md", card(f.sha256()));
  CHECK(f.refusal().empty());
  CHECK(f.told.empty());
}

TEST_CASE("an export's model card tells its tokenizer where tokenizer_config.json does not") {
  TwoTokenizers t;
  const std::string config = t.exported + "/tokenizer_config.json";
  auto earlier = nlohmann::json::parse(read_text(config));
  earlier.erase("tokenizer_sha256");
  write_bytes(config, earlier.dump());
  fs::remove(t.exported + "/tokenizer.model");  // as for byte-level BPE, which has no such file
  const Outcome same = t.next(t.exported, {});
  INFO(same.output);
  CHECK(same.code == 0);
  CHECK(same.output.find("warning") == std::string::npos);
  const Outcome other = t.next(t.exported, t.of_other());
  INFO(other.output);
  CHECK(other.code == static_cast<int>(ExitCode::data));
  fs::remove(t.exported + "/README.md");
  const Outcome without = t.next(t.exported, {});
  INFO(without.output);
  CHECK(without.code == 0);
  CHECK(without.output.find("names no SHA-256 of its tokenizer") != std::string::npos);
}

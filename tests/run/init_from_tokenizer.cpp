// Weights are not trained on, unawares, with the ids of another tokenizer.

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

/// A run on text, and shards of the same text by another tokenizer.
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
  CHECK(o.output.find("warning: " + t.exported + ": tells no tokenizer") != std::string::npos);
}

TEST_CASE("a tokenizer.json that export has written anew says of which file it is") {
  const TextRun text;
  RunConfig c;
  c.model.vocab = 512;
  c.data.train = DataSources(text.w.path("data/train"));
  c.init_from.folder = text.w.path("hf");
  fs::create_directories(c.init_from.folder);
  write_bytes(text.w.path("hf/tokenizer.json"), "{}");
  const auto check = [&c] {
    return error_or_none(ExitCode::data, [&c] {
      check_init_from_tokenizer(c, [](const std::string& told) { FAIL(told); });
    });
  };
  CHECK(check().find("data.train: expected shards of the tokenizer of ") == 0);
  const std::string sha256 =
      read_manifest(text.w.path("data/train/manifest.json")).tokenizer_sha256;
  write_bytes(text.w.path("hf/tokenizer_config.json"),
              "{\"tokenizer_sha256\": \"" + sha256 + "\"}");
  CHECK(check().empty());
}

// `bamtrain export` as a user calls it: which tokenizer is exported with the model.

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "train/trained_text.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Outcome export_to(const std::string& folder, const std::string& checkpoint, const Words& more) {
  Words command = {bamtrain_program(), "export", "--checkpoint", checkpoint, "--output", folder};
  command.insert(command.end(), more.begin(), more.end());
  return run(command, threads(1));
}

}  // namespace

TEST_CASE("export takes the tokenizer of the shards along") {
  TextRun text;
  const Workplace& w = text.w;
  const std::string checkpoint = text.train(1), folder = w.path("exported");
  const auto exported = [&](const Words& more) {
    fs::remove_all(folder);
    const Outcome o = export_to(folder, checkpoint, more);
    INFO(o.output);
    REQUIRE(o.code == 0);
    REQUIRE(fs::exists(folder + "/model.safetensors"));
    for (const char* name : {"/tokenizer_config.json", "/tokenizer.json"}) {
      CHECK(fs::exists(folder + name) == fs::exists(folder + "/tokenizer.model"));
    }
    return fs::exists(folder + "/tokenizer.model") ? read_text(folder + "/tokenizer.model") : "";
  };
  const auto refused = [&](const Words& more, ExitCode code, const std::string& message) {
    fs::remove_all(folder);
    const Outcome o = export_to(folder, checkpoint, more);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(code));
    CHECK(contains(o.output, message));
    CHECK_FALSE(fs::exists(folder));
  };
  const Outcome o = export_to("~/exported", checkpoint, {});
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::usage));
  CHECK(contains(o.output, "--output: expected a path without ~"));
  const std::string model = read_text(text.tokenizer);
  CHECK(exported({}) == model);
  CHECK(contains(read_text(folder + "/README.md"),
                 "| tokenizer | SentencePiece, 500 pieces: `tokenizer.model`, SHA-256 `"));
  CHECK(contains(
      read_text(folder + "/README.md"),
      "tokenizer = AutoTokenizer.from_pretrained(\"this folder\", trust_remote_code=True)"));
  CHECK(exported({"--no-tokenizer"}).empty());
  fs::create_directory(w.path("away"));
  const std::string moved = w.path("away/elsewhere");
  text.remove_copies();
  fs::rename(text.tokenizer, moved);
  refused({}, ExitCode::data,
          "give its path with --tokenizer, or leave it out with --no-tokenizer");
  CHECK(exported({"--tokenizer", moved}) == model);
  nlohmann::json config = nlohmann::json::parse(read_text(folder + "/tokenizer_config.json"));
  CHECK(config["tokenizer_sha256"] == sha256_file(moved));
  config.erase("tokenizer_sha256");
  CHECK(config == nlohmann::json::parse(R"({"tokenizer_class": "PreTrainedTokenizerFast",
            "add_bos_token": true, "add_eos_token": false, "bos_token": "<s>",
            "eos_token": "</s>", "pad_token": "<unk>", "unk_token": "<unk>",
            "clean_up_tokenization_spaces": false, "split_special_tokens": true,
            "padding_side": "left"})"));
  CHECK(nlohmann::json::parse(read_text(folder + "/generation_config.json"))["pad_token_id"] == 0);
  CHECK(exported({"--no-tokenizer"}).empty());
  refused({"--no-tokenizer", "--tokenizer", moved}, ExitCode::usage, "--no-tokenizer");
  for (const char* size : {"-5", "0", "", "9300000000GB"}) {
    refused({"--no-tokenizer", "--max-shard-size", size}, ExitCode::usage,
            "--max-shard-size: expected a number of bytes above 0");
  }
  refused({"--dtype", "fp16"}, ExitCode::usage,
          "--dtype: unknown value 'fp16'; choose one of fp32, bf16");

  auto settings = llama_settings();
  settings["vocab_size"] = "400";
  write_bytes(moved, trained_model(settings));
  refused({"--tokenizer", moved}, ExitCode::data, "expected the model's tokenizer");
}

TEST_CASE("export refuses a state that no run writes, by its place") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 1;
  REQUIRE(run(bamtrain_command(write_config(w, "run.json", c)), threads(1)).code == 0);
  const std::string checkpoint = w.path("out/checkpoint-00000001");
  for (const nlohmann::json& tokens :
       {nlohmann::json("many"), nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json(nullptr),
        nlohmann::json(UINT64_MAX), nlohmann::json::array()}) {
    forge_state(checkpoint, [&](nlohmann::json& state) { state["tokens"] = tokens; });
    const Outcome o = export_to(w.path("exported"), checkpoint, {});
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
    CHECK(contains(o.output, "state.json: tokens: expected an integer from 0"));
    CHECK(contains(o.output, "; use another checkpoint"));
    CHECK_FALSE(fs::exists(w.path("exported")));
  }
}

TEST_CASE("export knows the tokenizer and the documents of shards that a pattern names") {
  TextRun text;
  text.config["data"]["train"] = text.w.path("data/train/*.bin");
  text.config["data"]["val"] = text.w.path("data/val/*.bin");
  text.config["model"]["attention"]["document_mask"] = true;
  const std::string checkpoint = text.train(1), folder = text.w.path("exported");
  const Outcome o = export_to(folder, checkpoint, {});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(read_text(folder + "/tokenizer.model") == read_text(text.tokenizer));
  const auto manifest = nlohmann::json::parse(read_text(text.w.path("data/train/manifest.json")));
  CHECK(nlohmann::json::parse(read_text(folder + "/config.json"))["document_start"] ==
        manifest["document_start"]);
}

TEST_CASE("export of shards that say nothing of their tokenizer has none, unless it is named") {
  const TextRun text;
  nlohmann::json c = small_run(text.w);  // shards without a manifest
  c["train"]["stop_at"] = 1;
  c["model"]["vocab"] = 512;
  REQUIRE(run(bamtrain_command(write_config(text.w, "plain.json", c)), threads(1)).code == 0);
  const std::string checkpoint = text.w.path("out/checkpoint-00000001");
  REQUIRE(export_to(text.w.path("without"), checkpoint, {}).code == 0);
  CHECK_FALSE(fs::exists(text.w.path("without/tokenizer.model")));
  REQUIRE(export_to(text.w.path("with"), checkpoint, {"--tokenizer", text.tokenizer}).code == 0);
  CHECK(read_text(text.w.path("with/tokenizer.model")) == read_text(text.tokenizer));

  // A tokenizer that transformers cannot load, under a name from which it converts nothing.
  auto settings = llama_settings();
  settings["model_type"] = "unigram";
  settings["vocab_size"] = "340";
  const std::string unigram = text.w.path("unigram.model"), folder = text.w.path("unigram");
  write_bytes(unigram, trained_model(settings));
  const char* build = std::getenv("BAMTRAIN_BUILD");
  const Outcome tokenized = run({std::string(build ? build : "build") + "/data_tools/bamdata",
                                 "tokenize", "--document", "blank-line", "--tokenizer", unigram,
                                 "--output", text.w.path("by-unigram"), text.w.path("text.txt")});
  CHECK(tokenized.code == 0);
  CHECK(contains(
      tokenized.output,
      "warning: " + unigram + ": no tokenizer.json can represent it, since it is not a BPE"));
  const Outcome refused = export_to(folder, checkpoint, {"--tokenizer", unigram});
  INFO(refused.output);
  CHECK(refused.code == static_cast<int>(ExitCode::data));
  CHECK(contains(
      refused.output,
      unigram + ": tokenizer.json cannot represent this tokenizer, since it is not a BPE"));
  CHECK(contains(refused.output, "--sentencepiece copies its file"));
  CHECK_FALSE(fs::exists(folder));
  const Outcome o = export_to(folder, checkpoint, {"--tokenizer", unigram, "--sentencepiece"});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(read_text(folder + "/sentencepiece.model") == read_text(unigram));
  for (const char* name : {"tokenizer.model", "tokenizer.json", "tokenizer_config.json"}) {
    CHECK_FALSE(fs::exists(folder + "/" + name));
  }
  CHECK(contains(read_text(folder + "/README.md"),
                 "There is no tokenizer.json with its ids, since --sentencepiece was given"));
  const Outcome both =
      export_to(text.w.path("both"), checkpoint, {"--sentencepiece", "--no-tokenizer"});
  CHECK(both.code == static_cast<int>(ExitCode::usage));
}

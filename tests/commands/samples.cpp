// Texts that a model generates during training.

#include <cmath>
#include <csignal>
#include <filesystem>
#include <set>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/utf8.h"
#include "data/shard_set.h"
#include "data/tokenizer.h"
#include "train/trained_text.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

const nlohmann::json kSample = {{"prompts", {"The old sailor", ""}}, {"max_tokens", 12}};

/// (step, prompt) of each line.
std::vector<std::pair<int, std::string>> places(const std::vector<nlohmann::json>& lines) {
  std::vector<std::pair<int, std::string>> out;
  for (const auto& line : lines) out.emplace_back(line["step"], line["prompt"]);
  return out;
}
using Places = std::vector<std::pair<int, std::string>>;

Outcome train_with(TextRun& text, const nlohmann::json& sample) {
  text.config["sample"] = sample;
  return run(bamtrain_command(write_config(text.w, "run.json", text.config)), threads(1));
}

}  // namespace

TEST_CASE("samples leave the bits of the training as they are") {
  TextRun text;
  const std::string without = digest(text.train(6, "without"));
  text.config["sample"] = kSample;
  text.config["sample"]["every"] = 2;
  CHECK(digest(text.train(6, "with")) == without);
  CHECK_FALSE(std::filesystem::exists(text.w.path("without/samples.jsonl")));
  const auto lines = read_lines(text.w.path("with/samples.jsonl"));
  CHECK(places(lines) == Places{{2, "The old sailor"},
                                {2, ""},
                                {4, "The old sailor"},
                                {4, ""},
                                {6, "The old sailor"},
                                {6, ""}});
  std::set<std::string> texts;
  for (const auto& line : lines) {
    texts.insert(line["text"]);
    CHECK(line.size() == 3);
  }
  CHECK(texts.size() == 6);  // each step and prompt has its own random draws
}

TEST_CASE("a sample is what generate writes at the same step") {
  TextRun text;
  text.config["sample"] = kSample;
  text.config["sample"]["temperature"] = 0;
  const std::string checkpoint = text.train(3);
  const auto lines = read_lines(text.w.path("out/samples.jsonl"));
  REQUIRE(lines.size() == 2);
  for (const auto& line : lines) {
    CHECK(line["step"] == 3);
    const Outcome o = run({bamtrain_program(), "generate", "--checkpoint", checkpoint, "--prompt",
                           line["prompt"], "--max-tokens", "12", "--temperature", "0"},
                          threads(1));
    CHECK(o.code == 0);
    CHECK(o.output == line["text"].get<std::string>());
  }
}

TEST_CASE("a resumed run has each sample once, as a run that was never stopped") {
  TextRun text;
  text.config["sample"] = kSample;
  text.config["sample"]["every"] = 1;
  text.train(6, "straight");
  // Saved at step 4; then a process that died in step 6 while writing.
  text.train(4, "resumed");
  std::ofstream file(text.w.path("resumed/samples.jsonl"), std::ios::app);
  file << R"({"step":5,"prompt":"The old sailor","text":"other"})"
       << "\n"
       << R"({"step":6,"prom)";
  file.close();
  text.train(6, "resumed");
  const auto lines = read_lines(text.w.path("straight/samples.jsonl"));
  CHECK(lines.size() == 12);
  CHECK(read_lines(text.w.path("resumed/samples.jsonl")) == lines);
}

TEST_CASE("samples are the same on several processes") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  TextRun text;
  text.config["sample"] = kSample;
  text.train(3, "one");
  text.config["out_dir"] = text.w.path("two");
  const Outcome o =
      run(mpirun_command(2, bamtrain_command(write_config(text.w, "two.json", text.config))),
          threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(read_lines(text.w.path("two/samples.jsonl")) ==
        read_lines(text.w.path("one/samples.jsonl")));
}

TEST_CASE("samples that cannot be written are refused before the first step") {
  TextRun text;
  const auto refused = [&](nlohmann::json changes, ExitCode code, const std::string& message) {
    nlohmann::json sample = kSample;
    sample.update(changes);
    const Outcome o = train_with(text, sample);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(code));
    CHECK(contains(o.output, message));
    CHECK_FALSE(std::filesystem::exists(text.w.path("out")));
  };
  refused({{"top_p", 0}}, ExitCode::config, "sample.top_p");
  refused({{"temperature", -1}}, ExitCode::config, "sample.temperature");
  refused({{"min_p", 2}}, ExitCode::config, "sample.min_p");
  refused({{"max_tokens", 0}}, ExitCode::config, "sample.max_tokens");
  refused({{"prompts", {"a", "a"}}}, ExitCode::config, "sample.prompts");
  refused({{"prompts", nlohmann::json::array()}, {"every", 2}}, ExitCode::config,
          "sample.prompts: expected a prompt, since sample.every");
  refused({{"tokenizer", text.w.path("text.txt")}}, ExitCode::data, "a SentencePiece model");
  std::filesystem::create_directory(text.w.path("far"));
  text.remove_copies();
  std::filesystem::rename(text.tokenizer, text.w.path("far/away"));
  refused(nlohmann::json::object(), ExitCode::data, "give its path with sample.tokenizer");
  text.config["model"]["attention"]["prior"] = {{"name", "learned"}};
  refused({{"tokenizer", text.w.path("far/away")}, {"max_tokens", 80}}, ExitCode::config,
          "sample.max_tokens: expected at most 64 positions");
  nlohmann::json& attention = text.config["model"]["attention"];
  attention["prior"] = {{"name", "nope"}};
  attention["normalizer"] = {{"name", "topk"}, {"k", "n/2"}, {"of", "sequence"}};
  refused({{"tokenizer", text.w.path("far/away")}}, ExitCode::config,
          "model.attention.normalizer.of: expected \"row\"");
}

TEST_CASE("an evaluation tells bits per byte where the tokenizer lies near the shards") {
  TextRun text;
  const std::string checkpoint = text.train(1);
  const auto evaluate = [&] {
    const Outcome o = run({bamtrain_program(), "eval", "--checkpoint", checkpoint, "--lengths",
                           "8,16", "--output", text.w.path("result.json")},
                          threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(contains(o.output, " bits per byte)\n") ==
          (read_text(text.w.path("result.json")).find("bits_per_byte") != std::string::npos));
    return nlohmann::json::parse(read_text(text.w.path("result.json")));
  };
  const auto known = evaluate();
  // The text of the targets, in bytes: all windows of 16 in every document.
  const Tokenizer tokenizer = Tokenizer::open(text.tokenizer);
  const ShardSet shards = ShardSet::open(text.w.path("data/val"), 512);
  int64_t bytes = 0, tokens = 0;
  for (const DocumentSpan& d : shards.documents(tokenizer.bos())) {
    std::vector<int32_t> ids(static_cast<size_t>(d.length));
    shards.read_span(d, ids.data());
    const size_t end = (ids.size() - 1) / 16 * 16;  // of the targets
    tokens += static_cast<int64_t>(end);
    for (size_t i = 1; i <= end; ++i) {
      bytes += static_cast<int64_t>(tokenizer.bytes(ids[i], false).size());
    }
  }
  for (const auto& row : known["windows"]) {
    CHECK(row["tokens"] == tokens);
    CHECK(row["bytes"] == bytes);
    CHECK(row["bits_per_byte"].get<double>() ==
          Approx(row["loss"].get<double>() * static_cast<double>(tokens) / std::log(2.0) /
                 static_cast<double>(bytes))
              .epsilon(1e-12));
  }
  text.remove_copies();
  std::filesystem::remove(text.tokenizer);
  CHECK_FALSE(evaluate()["windows"][0].contains("bytes"));
}

TEST_CASE("a dry run tells the memory that samples take") {
  TextRun text;
  text.config["sample"] = kSample;
  std::vector<std::string> command =
      bamtrain_command(write_config(text.w, "run.json", text.config));
  command.push_back("--dry-run");
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(contains(o.output, "+ samples"));
}

// Token shards as other programs write them, with GPT-2's and Llama-3's ids, without text,
// tokenizer or manifest. They are built here byte by byte.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

struct Kind {
  uint32_t magic, version;
  int width;  // bytes per token
  uint32_t vocab, document_start;
};

constexpr Kind kGpt2 = {20240520, 1, 2, 50257, 50256};
constexpr Kind kLlama3 = {20240801, 7, 4, 128256, 128000};

void put(std::string& out, uint32_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * i & 0xFF);
}

/// Documents of 50 tokens: the id that begins a document, then the 49 ids below it, ascending.
void write(const std::string& path, const Kind& kind, uint32_t documents) {
  std::string bytes;
  for (const uint32_t field : {kind.magic, kind.version, 50 * documents}) put(bytes, field, 4);
  bytes.resize(1024);
  for (uint32_t d = 0; d < documents; ++d) {
    put(bytes, kind.document_start, kind.width);
    for (uint32_t i = 1; i < 50; ++i) {
      put(bytes, kind.document_start - 50 + i, kind.width);
    }
  }
  std::ofstream(path, std::ios::binary) << bytes;
}

nlohmann::json config_for(const Workplace& w, const Kind& kind) {
  std::filesystem::create_directories(w.path("shards"));
  write(w.path("shards/x_train_000001.bin"), kind, 60);
  write(w.path("shards/x_train_000002.bin"), kind, 20);
  write(w.path("shards/x_val_000000.bin"), kind, 7);
  nlohmann::json c = small_run(w);
  c["model"]["vocab"] = kind.vocab;
  c["model"]["width"] = 16;
  c["model"]["mlp"]["hidden"] = 16;
  c["data"] = {{"train", w.path("shards/x_train_*.bin")},
               {"val", w.path("shards/x_val_*.bin")},
               {"sequence_length", 32},
               {"document_start", kind.document_start}};
  c["optimizer"] = {{"name", "adamw"}, {"lr", 0.1}};
  c["schedule"] = {{"name", "constant"}};
  c["train"] = {{"steps", 6}, {"tokens_per_step", 128}, {"micro_batch", 2}};
  c["eval"] = {{"lengths", {16, 32}}};
  return c;
}

}  // namespace

TEST_CASE("shards of GPT-2 and of Llama-3 train and evaluate from their ids alone") {
  const Kind kind = GENERATE(kGpt2, kLlama3);
  const Workplace w;
  const std::string config = write_config(w, "run.json", config_for(w, kind));
  const Outcome o = run(bamtrain_command(config), threads(2));
  INFO(o.output);
  REQUIRE(o.code == 0);
  // At first, logits are small and every id is equally likely. Then about fifty are learned.
  const std::vector<nlohmann::json> lines = read_metrics(w.path("out"));
  REQUIRE(lines.size() == 6);
  CHECK(lines[0]["loss"].get<double>() == Approx(std::log(kind.vocab)).margin(0.05));
  CHECK(lines[5]["validation_loss"].get<double>() < std::log(kind.vocab) - 2);

  const std::string output = w.path("result.json");
  const Outcome e =
      run({bamtrain_program(), "eval", "--checkpoint", w.path("out/checkpoint-00000006"),
           "--lengths", "16,48", "--output", output},
          threads(2));
  INFO(e.output);
  REQUIRE(e.code == 0);
  const auto result = nlohmann::json::parse(std::ifstream(output));
  CHECK(result["documents"] == 7);
  for (const auto& row : result["windows"]) {
    CHECK(row["tokens"] == 7 * 48);
    CHECK(row["loss"].get<double>() < std::log(kind.vocab) - 2);
  }
}

TEST_CASE("evaluation of shards without a manifest takes the id that begins a document") {
  const Workplace w;
  nlohmann::json c = config_for(w, kGpt2);
  c["model"]["attention"]["document_mask"] = false;
  c["data"].erase("document_start");
  c.erase("eval");
  c["train"]["stop_at"] = 1;
  REQUIRE(run(bamtrain_command(write_config(w, "run.json", c)), threads(2)).code == 0);
  std::vector<std::string> command = {bamtrain_program(), "eval",
                                      "--checkpoint",     w.path("out/checkpoint-00000001"),
                                      "--lengths",        "16"};
  const Outcome without = run(command, threads(2));
  INFO(without.output);
  CHECK(without.code == 3);
  CHECK(without.output.find("give --document-start to eval") != std::string::npos);
  CHECK(without.output.find("--set data.document_start=50256,") != std::string::npos);
  for (const auto& [id, code] : {std::pair("50256", 0), {"50257", 3}, {"-1", 2}}) {
    std::vector<std::string> with = command;
    with.insert(with.end(), {"--document-start", id});
    const Outcome o = run(with, threads(2));
    INFO(o.output);
    CHECK(o.code == code);
  }
}

TEST_CASE("shards of other programs without the id that begins a document: the error gives it") {
  const Kind kind = GENERATE(kGpt2, kLlama3);
  const Workplace w;
  nlohmann::json c = config_for(w, kind);
  c["data"].erase("document_start");
  c["train"]["stop_at"] = 1;
  SECTION("for masks") { c["model"]["attention"]["document_mask"] = true; }
  SECTION("for lengths") { c["model"]["attention"]["document_mask"] = false; }
  const std::string config = write_config(w, "run.json", c);
  const Outcome o = run(bamtrain_command(config), threads(2));
  INFO(o.output);
  REQUIRE(o.code == 3);
  const std::string set = "--set data.document_start=";
  const size_t at = o.output.find(set);
  REQUIRE(at != std::string::npos);
  const std::string given = o.output.substr(at + 6, o.output.find(',', at) - at - 6);
  CHECK(given == "data.document_start=" + std::to_string(kind.document_start));
  CHECK(run(bamtrain_command(config, {given}), threads(2)).code == 0);
}

TEST_CASE("an id that begins no document is warned of, and documents are counted before a run") {
  const Workplace w;
  nlohmann::json c = config_for(w, kGpt2);
  c["train"]["steps"] = 1;
  c["eval"] = nlohmann::json::object();
  const bool masked = GENERATE(true, false);
  c["model"]["attention"]["document_mask"] = masked;
  const std::string right = write_config(w, "right.json", c);
  c["data"]["document_start"] = 7;
  const std::string wrong = write_config(w, "wrong.json", c);
  const std::string warning =
      "warning: no document start (id 7, data.document_start) in the 4000 "
      "tokens of " +
      w.path("shards/x_train_*.bin") + ": ";
  const auto dry = [](const std::string& config) {
    auto command = bamtrain_command(config);
    command.push_back("--dry-run");
    return run(command, threads(1));
  };
  for (const Outcome& o : {dry(right), run(bamtrain_command(right), threads(1))}) {
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find("no document start") == std::string::npos);
  }
  std::filesystem::remove_all(w.path("out"));
  for (const Outcome& o : {dry(wrong), run(bamtrain_command(wrong), threads(1))}) {
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK((o.output.find(warning) != std::string::npos) == masked);
  }
  const auto documents = [&](const std::string& config) {
    std::smatch match;
    const std::string output = dry(config).output;
    INFO(output);
    REQUIRE(std::regex_search(output, match, std::regex("\n  documents +([0-9]+) begin with")));
    return match[1].str();
  };
  CHECK(documents(right) == "80");
  CHECK(documents(wrong) == "0");
}

// Every shipped config, at a size that trains in a second.

#include <cmath>
#include <filesystem>

#include "catch.h"
#include "config/fixture.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// The mean loss of `count` steps, starting with `first`.
double mean_loss(const std::vector<nlohmann::json>& lines, size_t first, size_t count) {
  double sum = 0;
  for (size_t i = first; i < first + count; ++i) sum += lines[i]["loss"].get<double>();
  return sum / static_cast<double>(count);
}

}  // namespace

TEST_CASE("every configuration that comes with the program passes a dry run and learns") {
  const Workplace w;
  small_run(w);  // writes the shards
  const auto files = shipped_configs();
  CHECK(files.size() >= 16);
  for (const auto& file : files) {
    const std::string out = w.path(file.stem().string());
    auto command = bamtrain_command(file.string(), {"out_dir=" + out,
                                                    "device=cpu",
                                                    "data.train=" + w.path("train"),
                                                    "data.val=" + w.path("val"),
                                                    "data.document_start=1",
                                                    "data.sequence_length=48",
                                                    "model.vocab=211",
                                                    "model.width=48",
                                                    "model.heads=4",
                                                    "model.layers=2",
                                                    "model.mlp.hidden=64",
                                                    "optimizer.lr=1e-2",
                                                    "schedule.warmup_steps=2",
                                                    "train.steps=20",
                                                    "train.tokens_per_step=768",
                                                    "train.micro_batch=8",
                                                    "train.precision=fp32",
                                                    "eval.every=20",
                                                    "eval.tokens=480",
                                                    "eval.lengths=[16,48]"});
    const nlohmann::json read = read_config_document(file.string()).root;
    if (read.contains("schedule") && read["schedule"]["name"] == "wsd") {
      command.insert(command.end(), {"--set", "schedule.decay_steps=6"});
    }
    if (read.contains("init_from")) {  // a previous run, also at this size
      const auto folder = std::filesystem::path(read["init_from"]["folder"].get<std::string>());
      const std::string before = folder.parent_path().filename().string();
      command.insert(command.end(),
                     {"--set", "init_from.folder=" + w.path(before) + "/checkpoint-00000020"});
    }
    INFO(file.string());
    command.push_back("--dry-run");
    const Outcome dry = run(command, threads(1));
    INFO(dry.output);
    CHECK(dry.code == 0);
    command.pop_back();
    const Outcome trained = run(command, threads(1));
    INFO(trained.output);
    REQUIRE(trained.code == 0);
    const auto lines = read_metrics(out);
    REQUIRE(lines.size() == 20);
    for (const auto& line : lines) CHECK(std::isfinite(line["loss"].get<double>()));
    CHECK(mean_loss(lines, 15, 5) < mean_loss(lines, 0, 5) - 0.1);
    CHECK(std::filesystem::exists(out + "/perplexity.json"));
  }
}

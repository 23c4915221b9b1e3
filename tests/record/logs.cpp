#include "record/logs.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "core/durable_file.h"
#include "core/json.h"
#include "dist/backends.h"
#include "ops/cpu/cpu.h"
#include "run/train.h"
#include "train/support.h"
#include "train/trainer_run.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

struct Operation {
  FileOp op;
  std::string path, target;
};
std::vector<Operation> g_done;

}  // namespace

TEST_CASE("a line of metrics.jsonl has no parameter of very many numbers") {
  Parameter gates, square;
  gates.name = "gates";
  square.name = "square";
  const std::vector<Learned> learned = {{&gates, std::vector<float>(kMostOfALine, 1.5f)},
                                        {&square, std::vector<float>(kMostOfALine + 1)}};
  const nlohmann::ordered_json line = parameters_json(learned);
  REQUIRE(line.size() == 1);
  CHECK(line["gates"].get<std::vector<float>>() == learned[0].values);
}

TEST_CASE("what a run has logged is on the disk before a checkpoint of that step has its name") {
  const Workplace w;
  TrainRun run;
  run.config = small_train_run(w);
  run.config.out_dir = w.path("out");
  run.config.train.steps = 4;
  run.config.checkpoint.every = 2;
  run.config.log.tensorboard = true;
  run.config.sample.prompts = {"a"};
  run.config.sample.every = 1;
  run.resolved = {{"train", {{"precision", "fp32"}}}};
  run.samples = [](int64_t step, const Tensor&) {
    return std::vector<nlohmann::ordered_json>{{{"step", step}, {"text", "b"}}};
  };
  g_done.clear();
  set_file_fault([](FileOp op, const std::string& path, const std::string& target) {
    g_done.push_back({op, path, target});
    return 0;
  });
  const auto alone = make_single_communicator();
  train(run, *alone, *make_cpu_backend());
  set_file_fault(nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // for processes started by later tests

  const std::string out = w.path("out");
  int checkpoints = 0;
  for (size_t end = 0; end < g_done.size(); ++end) {
    const Operation& published = g_done[end];
    if (published.op != FileOp::rename) continue;
    if (!checkpoint_step(std::filesystem::path(published.target).filename())) continue;
    ++checkpoints;
    for (const std::string& log : {out + "/metrics.jsonl", out + "/samples.jsonl",
                                   out + "/tensorboard/events.out.tfevents.000001"}) {
      INFO(published.target << ", " << log);
      // 0: no such operation.
      const auto last = [&](FileOp op, const std::string& path) {
        for (size_t i = end; i > 0; --i) {
          if (g_done[i - 1].op == op && g_done[i - 1].path == path) return i;
        }
        return size_t{0};
      };
      const size_t written = last(FileOp::write, log), synced = last(FileOp::sync, log);
      CHECK(written > 0);
      CHECK(synced > written);
      CHECK(last(FileOp::sync_folder, parent_folder(log)) > synced);
    }
  }
  CHECK(checkpoints == 2);
}

TEST_CASE("a line of metrics.jsonl is short enough to be read again, whatever the values") {
  std::vector<Parameter> parameters(17);  // one more than fit
  std::vector<Learned> learned;
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].name = "p" + std::to_string(i);
    // The longest float: 23 characters and a comma.
    learned.push_back({&parameters[i], std::vector<float>(kMostOfALine, -1.17549444e-38f)});
  }
  const nlohmann::ordered_json line = {{"parameters", parameters_json(learned)}};
  CHECK(line["parameters"].size() == 16);
  CHECK(parse_json_line(line.dump(), {"f", ExitCode::io}) == nlohmann::json(line));
}

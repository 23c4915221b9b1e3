// A run that starts from another run's weights and optimizer state continues like that run.

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Epochs have kSteps steps, in order, at one learning rate. So step kSteps + n reads the same data
/// as step n, at the same rate.
constexpr int kSteps = 6;

struct Continued {
  Workplace w;
  Json config = small_run(w);
  std::string first;  // its checkpoint after one epoch

  explicit Continued(const char* optimizer = "radam") {
    // 16 windows per step, and one token after the last window.
    fs::create_directories(w.path("epoch"));
    write_shard(w.path("epoch/000.bin"), kSteps * 16 * 64 + 1, 211, 3);
    config["data"]["train"] = w.path("epoch");
    config["data"]["shuffle"] = false;
    config["optimizer"]["name"] = optimizer;
    config["schedule"] = {{"name", "constant"}};
    config["train"]["steps"] = kSteps + 2;
    config["checkpoint"] = {{"every", 1}, {"keep", 100}};
    const Outcome o = train("first");
    INFO(o.output);
    REQUIRE(o.code == 0);
    first = checkpoint("first", kSteps);
  }

  Outcome train(const std::string& out, const std::vector<std::string>& overrides = {},
                int processes = 1) {
    return run_config_into(w, config, out, overrides, processes);
  }

  std::string checkpoint(const std::string& out, int step) const {
    return w.path(out) + "/" + checkpoint_name(step);
  }

  /// A run of two steps from that checkpoint.
  Outcome next(const std::vector<std::string>& more = {}, int processes = 1) {
    std::vector<std::string> all = {"init_from.folder=" + first, "init_from.optimizer=true",
                                    "train.steps=2"};
    all.insert(all.end(), more.begin(), more.end());
    return train("next", all, processes);
  }

  void check_refused(const std::vector<std::string>& more, ExitCode code,
                     const std::vector<std::string>& words) {
    for (const bool dry : {true, false}) {
      config["out_dir"] = w.path("next");
      std::vector<std::string> all = {"init_from.folder=" + first, "init_from.optimizer=true"};
      all.insert(all.end(), more.begin(), more.end());
      auto command = bamtrain_command(write_config(w, "next.json", config), all);
      if (dry) command.push_back("--dry-run");
      const Outcome o = run(command, threads(1));
      INFO(o.output);
      CHECK(o.code == static_cast<int>(code));
      for (const std::string& word : words) {
        INFO("expected in the message: " << word);
        CHECK(o.output.find(word) != std::string::npos);
      }
      CHECK_FALSE(fs::exists(w.path("next")));
    }
  }
};

}  // namespace

TEST_CASE("the first steps with another run's moments are that run's next steps, to the bit") {
  for (const char* optimizer : {"radam", "adamw"}) {
    INFO(optimizer);
    Continued c(optimizer);
    const Outcome o = c.next();
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("and from its optimizer state, after 6 steps\n") != std::string::npos);
    for (const int step : {1, 2}) {
      CHECK(digest(c.checkpoint("next", step)) == digest(c.checkpoint("first", kSteps + step)));
    }
    // Without the optimizer state the result differs.
    fs::rename(c.w.path("next"), c.w.path("with"));
    REQUIRE(c.next({"init_from.optimizer=false"}).code == 0);
    CHECK(digest(c.checkpoint("next", 1)) != digest(c.checkpoint("with", 1)));
  }
}

TEST_CASE(
    "a run with another's optimizer state resumes bitwise identically, also on several processes") {
  Continued c;
  REQUIRE(c.next({"train.stop_at=1"}).code == 0);
  const Json state = open_checkpoint(c.checkpoint("next", 1)).state;
  CHECK(state["initialized_from"]["optimizer_steps"] == kSteps);
  CHECK(state["initialized_from"]["folder"] == fs::canonical(c.first).string());
  REQUIRE(c.next().code == 0);
  CHECK(digest(c.checkpoint("next", 2)) == digest(c.checkpoint("first", kSteps + 2)));
  // For a run that starts from there, the optimizer state includes all these steps.
  REQUIRE(c.train("third", {"init_from.folder=" + c.checkpoint("next", 2),
                            "init_from.optimizer=true", "train.steps=1"})
              .code == 0);
  CHECK(open_checkpoint(c.checkpoint("third", 1)).state["initialized_from"]["optimizer_steps"] ==
        kSteps + 2);
  forge_state(c.checkpoint("next", 2),
              [](Json& s) { s["initialized_from"]["optimizer_steps"] = -1; });
  const Outcome forged = c.next();
  INFO(forged.output);
  CHECK(forged.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(forged.output.find("initialized_from.optimizer_steps: expected a number of steps") !=
        std::string::npos);
  if (!have_mpi()) {
    WARN("built without MPI: several processes skipped");
    return;
  }
  fs::remove_all(c.w.path("next"));
  const Outcome two = c.next({}, 2);
  INFO(two.output);
  REQUIRE(two.code == 0);
  CHECK(digest(c.checkpoint("next", 2)) == digest(c.checkpoint("first", kSteps + 2)));
}

TEST_CASE("moments go on at another length") {
  Continued c;
  const Outcome o = c.next({"data.sequence_length=128", "train.micro_batch=1"});
  INFO(o.output);
  CHECK(o.code == 0);
}

TEST_CASE("moments that do not fit the run are refused before anything is written") {
  Continued c;
  c.check_refused({"optimizer.name=adamw"}, ExitCode::config,
                  {"optimizer.name: expected \"radam\", as in " + c.first, "found \"adamw\"",
                   "or init_from.optimizer to false"});
  c.check_refused({"optimizer.betas=[0.8,0.95]"}, ExitCode::config,
                  {"optimizer.betas: expected [0.9,0.95], as in ", "found [0.8,0.95]"});
  c.check_refused({"model.attention.prior.train=[\"theta_alpha\"]"}, ExitCode::config,
                  {"optimizer.safetensors", "train the same parameters as the checkpoint's run"});
  c.check_refused({"model.layers=3"}, ExitCode::checkpoint, {"change model.layers"});
  // A folder of weights has no optimizer state.
  const Outcome exported =
      run({bamtrain_program(), "export", "--checkpoint", c.first, "--output", c.w.path("hf")},
          threads(1));
  REQUIRE(exported.code == 0);
  c.check_refused(
      {"init_from.folder=" + c.w.path("hf")}, ExitCode::config,
      {"init_from.optimizer: expected a checkpoint in init_from.folder", "without a state.json"});
  std::ofstream(c.first + "/optimizer.safetensors", std::ios::app) << "x";
  c.check_refused({}, ExitCode::checkpoint, {"optimizer.safetensors"});
}

// Which checkpoints are kept, and what is reported if the newest has diverged.

#include <filesystem>
#include <fstream>
#include <functional>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

std::vector<std::string> checkpoints_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.find("checkpoint-") != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A run that saves after every step, keeps one checkpoint, and has no validation.
nlohmann::json saving_run(const Workplace& w) {
  nlohmann::json c = small_run(w);
  c["data"].erase("val");
  c["schedule"] = {{"name", "constant"}};
  c["checkpoint"] = {{"every", 1},
                     {"keep", 1},
                     {"allow_change", {"optimizer.lr", "optimizer.clip", "train.steps"}}};
  return c;
}

Outcome train_saving(const Workplace& w, const nlohmann::json& c,
                     const std::vector<std::string>& overrides = {}) {
  return run_config(w, c, overrides, 1);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an older checkpoint stays until a loss of the newest was seen") {
  const Workplace w;
  nlohmann::json c = saving_run(w);
  REQUIRE(train_saving(w, c, {"train.stop_at=3"}).code == 0);
  CHECK(checkpoints_in(w.path("out")) == Names{"checkpoint-00000002", "checkpoint-00000003"});
  REQUIRE(train_saving(w, c, {"checkpoint.every=0", "train.stop_at=5"}).code == 0);
  CHECK(checkpoints_in(w.path("out")) == Names{"checkpoint-00000003", "checkpoint-00000005"});
  c["data"]["val"] = w.path("val");  // the last pass validates the last parameters
  REQUIRE(train_saving(w, c).code == 0);
  CHECK(checkpoints_in(w.path("out")) == Names{"checkpoint-00000008"});
}

TEST_CASE("where the newest checkpoint has diverged the one before it is named, and is there") {
  const Workplace w;
  const nlohmann::json c = saving_run(w);
  REQUIRE(train_saving(w, c, {"train.stop_at=2"}).code == 0);
  const std::vector<std::string> diverging = {"optimizer.lr=1e18", "optimizer.clip=0"};
  Outcome o = train_saving(w, c, diverging);
  INFO(o.output);
  REQUIRE(o.code == static_cast<int>(ExitCode::nonfinite));
  const Names left = checkpoints_in(w.path("out"));
  REQUIRE(left.size() == 2);
  for (int again = 0; again < 2; ++again) {  // the run itself, then the run that resumes from it
    CHECK(o.output.find("the parameters of " + w.path("out/") + left[1] +
                        " have diverged: move it elsewhere and resume from " + w.path("out/") +
                        left[0]) != std::string::npos);
    CHECK(checkpoints_in(w.path("out")) == left);
    o = train_saving(w, c, diverging);
    REQUIRE(o.code == static_cast<int>(ExitCode::nonfinite));
  }
  std::filesystem::rename(w.path("out/") + left[1], w.path("diverged"));
  o = train_saving(w, c);
  INFO(o.output);
  CHECK(o.code == 0);
}

TEST_CASE("what a run that died has left is removed by the next, which has no step left") {
  const Workplace w;
  nlohmann::json c = saving_run(w);
  c["data"]["val"] = w.path("val");
  REQUIRE(train_saving(w, c).code == 0);
  // Killed in the last prune: an older checkpoint left under a temporary name, or with part of its
  // files.
  std::filesystem::copy(w.path("out/checkpoint-00000008"), w.path("out/.tmp-checkpoint-00000006"));
  std::filesystem::copy(w.path("out/checkpoint-00000008"), w.path("out/checkpoint-00000007"));
  REQUIRE(train_saving(w, c).code == 0);
  CHECK(checkpoints_in(w.path("out")) == Names{"checkpoint-00000008"});
}

TEST_CASE("metrics.jsonl that is removed or emptied in mid-run goes on, with a warning") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 400;
  c["checkpoint"] = {{"every", 100}};
  std::function<void(const std::string&)> lose;
  SECTION("removed") {
    lose = [](const std::string& path) { std::filesystem::remove(path); };
  }
  SECTION("emptied") {
    lose = [](const std::string& path) { std::filesystem::resize_file(path, 0); };
  }
  REQUIRE(train_saving(w, c, {"train.stop_at=4"}).code == 0);  // writes some lines
  const auto remove = [&](int) { lose(w.path("out/metrics.jsonl")); };
  const Outcome o =
      run_and(bamtrain_command(write_config(w, "run.json", c)), "\n5/400 loss", remove, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  const size_t told =
      o.output.find("warning: metrics.jsonl was removed or truncated while the run wrote");
  CHECK(told != std::string::npos);
  CHECK(o.output.find("warning: ", told + 1) == std::string::npos);
  CHECK(read_metrics(w.path("out")).back()["step"] == 400);
}

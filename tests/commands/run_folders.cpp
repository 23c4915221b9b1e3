// A run's folder where a checkpoint is wanted.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/error.h"
#include "record/named_checkpoint.h"
#include "train/changed_checkpoint.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

/// A run of 8 steps with a checkpoint after every second one. `best`: the step with the best
/// validation loss, according to the checkpoints, which then name it.
struct SavedRun {
  Workplace w;
  json config = small_run(w);

  explicit SavedRun(int64_t best = 0) {
    config["checkpoint"] = {{"every", 2}, {"keep", 8}};
    config["eval"] = {{"every", 2}, {"tokens", 480}, {"lengths", {16, 48}}};
    if (best > 0) config["checkpoint"]["best"] = {{"metric", "validation/loss"}, {"mode", "min"}};
    const Outcome o = run_config(w, config);
    INFO(o.output);
    REQUIRE(o.code == 0);
    if (best == 0) return;
    forge_state(checkpoint(8), [best](json& state) { state["best"]["step"] = best; });
  }

  std::string checkpoint(int64_t step) const { return w.path("out/" + checkpoint_name(step)); }

  /// Runs a command on the run's folder and returns the result that it writes.
  json evaluated(const Words& arguments) const {
    Words all = {bamtrain_program(), "eval", "--output", w.path("result.json")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome o = run(all, threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    json result = json::parse(read_text(w.path("result.json")));
    result["output"] = o.output;
    return result;
  }
};

/// The folder of the checkpoint that is opened, and what is said of it.
std::pair<std::string, std::string> opened(const std::string& folder) {
  std::string told;
  const Checkpoint c =
      open_named_checkpoint(folder, [&told](const std::string& text) { told += text; });
  return {c.folder, told};
}

}  // namespace

TEST_CASE("a run's folder stands for its newest checkpoint that is intact") {
  const SavedRun t;
  const std::string out = t.w.path("out");
  CHECK(opened(out) ==
        std::pair(t.checkpoint(8), out + ": newest checkpoint, checkpoint-00000008"));
  CHECK(opened(t.checkpoint(4)) == std::pair(t.checkpoint(4), std::string()));
  fs::resize_file(t.checkpoint(8) + "/model.safetensors", 100);
  const auto [folder, told] = opened(out);
  CHECK(folder == t.checkpoint(6));
  CHECK(told.find("warning: ") == 0);
  CHECK(told.find("checkpoint-00000008") != std::string::npos);
}

TEST_CASE("a run's folder stands for its best checkpoint where the run names a measure") {
  const SavedRun t(4);
  const std::string out = t.w.path("out");
  CHECK(opened(out) ==
        std::pair(t.checkpoint(4),
                  out + ": best checkpoint by validation/loss, checkpoint-00000004"));
  fs::remove_all(t.checkpoint(4));
  CHECK_THROWS_WITH(opened(out), Catch::Contains("checkpoint-00000004: no such folder") &&
                                     Catch::Contains("name the newest, " + t.checkpoint(8)));
}

TEST_CASE("eval of a run measures its checkpoint at the lengths of its configuration") {
  const SavedRun t;
  const json result = t.evaluated({t.w.path("out/")});
  CHECK(result["step"] == 8);
  REQUIRE(result["windows"].size() == 2);
  CHECK(result["windows"][1]["length"] == 48);
  const std::string output = result["output"];
  CHECK(output.find("--lengths 16,48, as in eval.lengths") != std::string::npos);
  CHECK(output.find("newest checkpoint, checkpoint-00000008") != std::string::npos);
  // The lengths may be followed by the run, and may be given one by one.
  const json given = t.evaluated({"--lengths", "16", "48", t.w.path("out")});
  CHECK(given["windows"] == result["windows"]);
  const json named = t.evaluated({"--checkpoint", t.checkpoint(8)});
  CHECK(named["windows"] == result["windows"]);
}

TEST_CASE("eval without lengths needs a run that has some") {
  const SavedRun t;
  const auto refused = [&t](const Words& more, const std::string& part) {
    Words all = {bamtrain_program(), "eval", t.w.path("out")};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome o = run(all, threads(1));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::usage));
    CHECK(o.output.find(part) != std::string::npos);
  };
  refused({"--task", "copy"}, "--lengths: missing (the run has none for copy in eval.tasks)");
  forge_state(t.checkpoint(8),
              [](json& state) { state["config"]["eval"]["lengths"] = json::array(); });
  refused({}, "--lengths: missing (the run has none for perplexity in eval.lengths)");
}

TEST_CASE("inspect takes a run's folder") {
  const SavedRun t;
  const Outcome o = run({bamtrain_program(), "inspect", t.w.path("out"), "--ids", "1,2,3",
                         "--output", t.w.path("seen")},
                        threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("newest checkpoint, checkpoint-00000008") != std::string::npos);
  CHECK(read_text(t.w.path("seen.html")).find("checkpoint-00000008") != std::string::npos);
}

TEST_CASE("export and report of a run need no name for what they write") {
  const SavedRun t;
  const Outcome exported =
      run({bamtrain_program(), "export", t.w.path("out"), "--no-tokenizer"}, threads(1));
  INFO(exported.output);
  CHECK(exported.code == 0);
  CHECK(fs::exists(t.checkpoint(8) + "-huggingface/config.json"));
  CHECK(opened(t.w.path("out")).first == t.checkpoint(8));  // not taken for a checkpoint
  fs::remove(t.w.path("out/report.html"));
  const Outcome drawn = run({bamtrain_program(), "report", t.w.path("out")}, threads(1));
  INFO(drawn.output);
  CHECK(drawn.code == 0);
  CHECK(fs::exists(t.w.path("out/report.html")));
}

TEST_CASE(
    "a folder whose name is not UTF-8 is evaluated, and a result names it as well as it can") {
  const SavedRun t;
  fs::copy(t.w.path("out"), t.w.path("out\xff"), fs::copy_options::recursive);
  const json result = t.evaluated({t.w.path("out\xff")});
  CHECK(result["checkpoint"] == t.w.path("out\uFFFD/checkpoint-00000008"));
}

TEST_CASE("a run resumes from another run's folder, and goes on with its own") {
  const SavedRun t;
  const auto trained = [&t](const std::string& stop) {
    return run({bamtrain_program(), "train", t.w.path("run.json"), "--resume", t.w.path("out"),
                "--set", "out_dir=" + t.w.path("next"), "train.steps=12", "schedule.name=constant",
                "checkpoint.allow_change=[\"train\",\"schedule\"]", "train.stop_at=" + stop},
               threads(1));
  };
  const Outcome first = trained("10");
  INFO(first.output);
  REQUIRE(first.code == 0);
  CHECK(first.output.find("resuming from " + t.checkpoint(8) + " at step 8") != std::string::npos);
  const Outcome second = trained("12");
  INFO(second.output);
  REQUIRE(second.code == 0);
  CHECK(second.output.find("next/checkpoint-00000010 at step 10") != std::string::npos);
}

TEST_CASE("a run resumes from its own folder as it does by itself") {
  const SavedRun t(4);
  const Outcome o =
      run({bamtrain_program(), "train", t.w.path("run.json"), "--resume", t.w.path("out") + "/"},
          threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("resuming from " + t.checkpoint(8)) != std::string::npos);
}

TEST_CASE("a folder that is neither a run's nor a checkpoint is refused by what it is") {
  const SavedRun t;
  CHECK_THROWS_WITH(
      opened(t.w.path("train")),
      Catch::Contains("expected a checkpoint, or the folder of a run with checkpoints"));
  CHECK_THROWS_WITH(opened(t.w.path("run.json")), Catch::Contains("found a file"));
  CHECK_THROWS_WITH(opened(t.w.path("none")), Catch::Contains("no such folder"));
}

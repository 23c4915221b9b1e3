// `bamtrain train`: how a run is named and changed on the command line.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/error.h"
#include "train/changed_checkpoint.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Outcome bamtrain_with(Words arguments) {
  arguments.insert(arguments.begin(), bamtrain_program());
  return run(arguments, threads(1));
}

/// The configuration that --print-config prints for these arguments.
json resolved_by(const Words& arguments) {
  Words all = arguments;
  all.emplace_back("--print-config");
  const Outcome o = bamtrain_with(all);
  INFO(o.output);
  REQUIRE(o.code == 0);
  return json::parse(o.output);
}

void check_refused(const Words& arguments, ExitCode code, const std::string& part) {
  const Outcome o = bamtrain_with(arguments);
  INFO(o.output);
  CHECK(o.code == static_cast<int>(code));
  CHECK(o.output.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("train takes its configuration as an argument or as --config, as without a command") {
  const Workplace w;
  const std::string file = write_config(w, "run.json", small_run(w));
  const json config = resolved_by({"--config", file});
  CHECK(config["config_version"] == 3);
  CHECK(config["optimizer"]["clip"].is_number());  // a key that the file does not have
  CHECK(resolved_by({"train", file}) == config);
  CHECK(resolved_by({"train", "--config", file}) == config);
  CHECK_FALSE(std::filesystem::exists(w.path("out")));  // nothing but printed
}

TEST_CASE("--set takes several values, up to an argument without one") {
  const Workplace w;
  const std::string file = write_config(w, "run.json", small_run(w));
  const json apart =
      resolved_by({"train", file, "--set", "seed=7", "--set", "eval.lengths=[16,48]"});
  CHECK(apart["seed"] == 7);
  CHECK(resolved_by({"train", file, "--set", "seed=7", "eval.lengths=16,48"}) == apart);
  CHECK(resolved_by({"train", "--set", "seed=7", "eval.lengths=16,48", file}) == apart);
  CHECK(resolved_by({"--set", "seed=7", "eval.lengths=16,48", "--config", file}) == apart);
  CHECK(resolved_by({"train", file, "--set=seed=7", "eval.lengths=16,48"}) == apart);
  CHECK(resolved_by({"train", file, "--resume", "never", "--set",
                     "seed=7"})["checkpoint"]["resume"] == "never");
}

TEST_CASE("what train cannot take is refused as misuse of the command line") {
  const Workplace w;
  const std::string file = write_config(w, "run.json", small_run(w));
  check_refused({"train"}, ExitCode::usage, "train: CONFIG is required");
  check_refused({}, ExitCode::usage, "bamtrain train FILE trains a run");
  check_refused({file}, ExitCode::usage, "to train this run: bamtrain train " + file);
  check_refused({"--config", file, "train", file}, ExitCode::usage,
                "train: does not take --config before its name");
  check_refused({"--set", "seed=1", "train", file}, ExitCode::usage,
                "train: does not take --set before its name");
  check_refused({"train", file, "--set", "seed"}, ExitCode::usage, "expected key=value");
  check_refused({"train", file, "seed=1"}, ExitCode::usage, "unexpected argument 'seed=1'");
  check_refused({"train", w.path("none.json")}, ExitCode::io, "none.json: no such file");
  check_refused({"train", w.path("train")}, ExitCode::io, "found a folder; name the file in it");
}

TEST_CASE("out_dir has the resolved configuration, from which the same run can be trained") {
  const Workplace w;
  const json config = small_run(w);
  const std::string file = write_config(w, "run.json", config), own = w.path("out/config.json");
  const json resolved = resolved_by({"train", file});
  REQUIRE(bamtrain_with({"train", file}).code == 0);
  CHECK(json::parse(read_text(own)) == resolved);
  const std::string trained = digest(w.path("out/checkpoint-00000008"));
  REQUIRE(bamtrain_with({"train", own, "--set", "out_dir=" + w.path("again")}).code == 0);
  CHECK(digest(w.path("again/checkpoint-00000008")) == trained);
  // How a start resumed is not part of the run.
  REQUIRE(bamtrain_with({"train", file, "--resume", "never", "--set", "out_dir=" + w.path("new")})
              .code == 0);
  CHECK(json::parse(read_text(w.path("new/config.json")))["checkpoint"]["resume"] == "auto");
  check_refused({"train", w.path("out")}, ExitCode::io, "did you mean " + own + "?");
  // A resumed run says what it was resumed with.
  REQUIRE(bamtrain_with({"train", file, "--set", "log.every=2"}).code == 0);
  CHECK(json::parse(read_text(own))["log"]["every"] == 2);
}

TEST_CASE("a configuration without a version has the newest, or that of the run to resume") {
  const Workplace w;
  json config = small_run(w);
  config.erase("config_version");
  const std::string file = write_config(w, "run.json", config);
  const std::string newest = "config_version: 3, the newest, as " + file + " names none";
  const Outcome begun = bamtrain_with({"train", file, "--set", "train.stop_at=4"});
  INFO(begun.output);
  REQUIRE(begun.code == 0);
  CHECK(begun.output.find(newest) != std::string::npos);
  CHECK(json::parse(read_text(w.path("out/config.json")))["config_version"] == 3);
  // As if a program of version 2 had written the checkpoint.
  forge_state(w.path("out/checkpoint-00000004"),
              [](json& state) { state["config"]["config_version"] = 2; });
  const Outcome resumed = bamtrain_with({"train", file});
  INFO(resumed.output);
  REQUIRE(resumed.code == 0);
  CHECK(resumed.output.find("config_version: 2, that of the run to resume") != std::string::npos);
  CHECK(json::parse(read_text(w.path("out/config.json")))["config_version"] == 2);
  const json state = json::parse(read_text(w.path("out/checkpoint-00000008/state.json")));
  CHECK(state["config"]["config_version"] == 2);
}

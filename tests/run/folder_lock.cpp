// One run per folder, from before it looks for a checkpoint until its last write.

#include "core/folder_lock.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "run/resume.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace fs = std::filesystem;

namespace {

constexpr const char* kOther = "in use by";

void require_lock_error(const Outcome& o, ExitCode code, const std::string& part) {
  INFO(o.output);
  CHECK(o.code == static_cast<int>(code));
  CHECK(o.output.find(part) != std::string::npos);
  CHECK(o.output.find("; ", o.output.find(part)) != std::string::npos);
}

}  // namespace

TEST_CASE("a lock is held until its file is removed or replaced") {
  const Workplace w;
  std::optional<FolderLock> lock(std::in_place, w.path("."));
  lock->require_held();
  CHECK(error_of(ExitCode::io, [&] { FolderLock(w.path(".")); }).find(kOther) != std::string::npos);
  fs::remove(w.path(".lock"));
  const auto lost = [&] { return error_of(ExitCode::io, [&] { lock->require_held(); }); };
  CHECK(lost().find(".lock: lost the lock of this folder: No such file or directory") !=
        std::string::npos);
  const FolderLock second(w.path("."));
  CHECK(lost().find("the file was replaced") != std::string::npos);
  second.require_held();
  lock.reset();
  CHECK(error_of(ExitCode::io, [&] { FolderLock(w.path(".")); }).find(kOther) != std::string::npos);
}

TEST_CASE("another run is what a second start finds first, whatever lies in the folder") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const std::string config = write_config(w, "run.json", c);
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(1)).code == 0);
  std::ofstream(w.path("out/metrics.jsonl"), std::ios::app) << "#\n";
  const std::string metrics = read_text(w.path("out/metrics.jsonl"));
  const FolderLock first(w.path("out"));
  std::string change = "seed=7";
  SECTION("nothing else") {}
  SECTION("a run of another length") { change = "train.steps=3"; }
  SECTION("files where none should be") { change = "checkpoint.resume=never"; }
  SECTION("a damaged checkpoint") {
    fs::remove(w.path("out/checkpoint-00000004/model.safetensors"));
  }
  SECTION("a checkpoint that is removed meanwhile") {
    fs::remove_all(w.path("out/checkpoint-00000004"));
  }
  require_lock_error(run(bamtrain_command(config, {change}), threads(1)), ExitCode::io, kOther);
  if (have_mpi()) {
    const Outcome o = run(mpirun_command(2, bamtrain_command(config, {change})), threads(1));
    require_lock_error(o, ExitCode::io, kOther);
    CHECK(o.output.find("warning: ") == std::string::npos);
  }
  CHECK(read_text(w.path("out/metrics.jsonl")) == metrics);
}

TEST_CASE("a run that makes its folder is not alone in it where anything is there already") {
  const Workplace w;
  fs::create_directory(w.path("out"));
  const FolderLock lock(w.path("out"));
  require_untouched(w.path("out"));
  std::ofstream(w.path("out/metrics.jsonl"));
  const std::string message = error_of(ExitCode::io, [&] { require_untouched(w.path("out")); });
  CHECK(message.find("another run started and ended here meanwhile, and left metrics.jsonl") !=
        std::string::npos);
  CHECK(message.find("; run the same command again") != std::string::npos);
}

TEST_CASE(
    "what a refused run leaves in an empty folder keeps none out, and a dry run leaves none") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 1;
  c["checkpoint"]["resume"] = "never";
  const std::string config = write_config(w, "run.json", c);
  std::vector<std::string> dry = bamtrain_command(config);
  dry.push_back("--dry-run");
  fs::create_directory(w.path("out"));
  CHECK(run(dry, threads(1)).code == 0);
  CHECK(fs::is_empty(w.path("out")));
  {
    const FolderLock lock(w.path("out"));
    CHECK(run(dry, threads(1)).code == 0);
    require_lock_error(run(bamtrain_command(config), threads(1)), ExitCode::io, kOther);
  }
  CHECK(fs::exists(w.path("out/.lock")));
  const Outcome o = run(bamtrain_command(config), threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  require_lock_error(run(bamtrain_command(config), threads(1)), ExitCode::config,
                     "checkpoint.resume");
}

TEST_CASE("the folder is a run's own until its final evaluation has ended") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 2;
  write_shard(w.path("val/000.bin"), 400'000, 211, 3);
  c["eval"] = {{"tokens", 64}, {"lengths", {64}}, {"length_tokens", 200'000}};
  const std::string config = write_config(w, "run.json", c);
  Outcome second;
  const auto intrude = [&](int first) {
    kill(first, SIGSTOP);
    second = run(bamtrain_command(config), threads(1));
    CHECK_FALSE(fs::exists(w.path("out/perplexity.json")));
    kill(first, SIGCONT);
  };
  const Outcome first = run_and(bamtrain_command(config), "\ncheckpoint ", intrude, threads(1));
  INFO(first.output);
  CHECK(first.code == 0);
  require_lock_error(second, ExitCode::io, kOther);
  CHECK(fs::exists(w.path("out/perplexity.json")));
}

TEST_CASE("a run whose lock is removed leaves the folder to whoever comes") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 100000;
  const std::string config = write_config(w, "run.json", c), lock = w.path("out/.lock");
  std::string found = "No such file or directory";
  std::function<void(int)> lose = [&](int) { fs::remove(lock); };
  SECTION("removed") {}
  SECTION("replaced") {
    found = "the file was replaced";
    lose = [&](int) {
      std::ofstream(w.path("lock")).close();
      fs::rename(w.path("lock"), lock);
    };
  }
  const Outcome o = run_and(bamtrain_command(config), "\n1/100000 loss", lose, threads(1));
  require_lock_error(o, ExitCode::io, lock + ": lost the lock of this folder: " + found);
  CHECK(run(bamtrain_command(config, {"train.stop_at=6"}), threads(1)).code == 0);
}

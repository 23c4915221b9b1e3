// bamtrain study as its users call it.

#include "study/runner.h"

#include <csignal>
#include <filesystem>
#include <thread>

#include "core/folder_lock.h"
#include "study/fixture.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::ordered_json;

namespace {

std::vector<std::string> command(const std::string& study,
                                 const std::vector<std::string>& options = {}) {
  std::vector<std::string> c = {bamtrain_program(), "study", study};
  c.insert(c.end(), options.begin(), options.end());
  return c;
}

constexpr const char* kFiles[] = {"table.md", "table.csv", "table.tex", "runs.csv", "study.html"};

std::string files_of(const std::string& folder) {
  std::string all;
  for (const char* const name : kFiles) all += read_text(folder + "/" + name);
  return all;
}

/// Of the one study: what undisturbed runs give.
Outcome finish(const std::string& study, const std::vector<std::string>& options = {}) {
  const Outcome o = run(command(study, options), threads(2));
  INFO(o.output);
  REQUIRE(o.code == 0);
  return o;
}

}  // namespace

TEST_CASE("a study trains what is missing, and ends with the same table however it was stopped") {
  const Workplace w;
  write_base(w);
  const std::string whole = write_study(w, small_study(w));
  const Outcome first = finish(whole, {"--jobs", "2"});
  CHECK(first.output.find("6 runs: 6 done, 0 diverged, 0 failed") != std::string::npos);
  const std::string table = read_text(w.path("study/table.md"));
  CHECK(table.find("copy: loss, by length") != std::string::npos);
  CHECK(std::filesystem::exists(w.path("study/configs/alibi_seed-1.json")));
  // Nothing is left to do.
  const auto written =
      std::filesystem::last_write_time(w.path("study/runs/alibi_seed-1/results.json"));
  const Outcome again = finish(whole);
  CHECK(again.output.find("begins") == std::string::npos);
  CHECK(std::filesystem::last_write_time(w.path("study/runs/alibi_seed-1/results.json")) ==
        written);

  ordered_json j = small_study(w);
  j["out_dir"] = w.path("other");
  const std::string disturbed = write_study(w, j, "disturbed.json");
  const Outcome stopped = run_and(
      command(disturbed), "seed 1: done", [](int process) { kill(process, SIGTERM); }, threads(1));
  INFO(stopped.output);
  CHECK(stopped.code == 85);
  const Outcome killed = run_and(
      command(disturbed), "seed 2: begins", [](int process) { kill(process, SIGKILL); },
      threads(1));
  CHECK(killed.code == 128 + SIGKILL);
  finish(disturbed);
  CHECK(files_of(w.path("other")) == files_of(w.path("study")));

  // More to measure is measured on the runs that are there.
  j = small_study(w);
  j["set"] = {{"eval.tasks", {{{"task", "copy"}, {"lengths", {9, 18, 27}}, {"samples", 20}}}}};
  const Outcome more = finish(write_study(w, j, "more.json"), {"--jobs", "2"});
  CHECK(more.output.find("goes on from step 12") != std::string::npos);
  CHECK(read_text(w.path("study/table.md")).find("| attention | n | 9 | 18 | 27 |") !=
        std::string::npos);

  // Runs of elsewhere are taken over.
  j = small_study(w);
  j["out_dir"] = w.path("third");
  j["take_over"] = {w.path("other/runs")};
  const Outcome taken = finish(write_study(w, j, "third.json"));
  CHECK(taken.output.find("6 of 6 runs are in the folders") != std::string::npos);
  CHECK(taken.output.find("begins") == std::string::npos);
  CHECK(taken.output.find("6 done") != std::string::npos);
}

TEST_CASE("a dry run says what is done and what is not, and trains nothing") {
  const Workplace w;
  write_base(w);
  const Outcome o = finish(write_study(w, small_study(w)), {"--dry-run"});
  CHECK(o.output.find("6 runs: 0 done, 6 to do, 1 at a time") != std::string::npos);
  CHECK(o.output.find("hours at least") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("study")));
}

TEST_CASE("a run that diverges is said to have, once; one that fails fails the study") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  j["axes"][0]["values"]["wild"] = {{"optimizer.lr", 1e30}, {"optimizer.clip", 0}};
  const std::string study = write_study(w, j);
  const Outcome o = finish(study);
  CHECK(o.output.find("wild, seed 1: diverged") != std::string::npos);
  CHECK(o.output.find("3 runs: 2 done, 1 diverged, 0 failed") != std::string::npos);
  CHECK(read_text(w.path("study/table.md")).find("Diverged: wild, seed 1.") != std::string::npos);
  CHECK(finish(study).output.find("begins") == std::string::npos);
  // The same folder, another learning rate: what is there is not what is asked for.
  j["set"] = {{"optimizer.eps", 1e-3}};
  const Outcome refused = run(command(write_study(w, j)), threads(2));
  INFO(refused.output);
  CHECK(refused.code == 3);
  CHECK(refused.output.find("alibi, seed 1: failed (3)") != std::string::npos);
  CHECK(refused.output.find("optimizer.eps") != std::string::npos);
  // Other data, on which a run could go on.
  j["set"] = {{"data.train.length", {4, 9}}};
  const Outcome other = run(command(write_study(w, j)), threads(2));
  INFO(other.output);
  CHECK(other.code == 3);
  CHECK(other.output.find("alibi_seed-1 has a run of another data.train.length") !=
        std::string::npos);
}

TEST_CASE("two studies of one folder divide its runs") {
  const Workplace w;
  write_base(w);
  const std::string study = write_study(w, small_study(w));
  Outcome outcomes[2];
  {
    std::vector<std::jthread> both;
    for (Outcome& o : outcomes) {
      both.emplace_back([&o, &study] { o = run(command(study), threads(1)); });
    }
  }
  int begun = 0;
  for (const Outcome& o : outcomes) {
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find("6 runs: 6 done, 0 diverged, 0 failed") != std::string::npos);
    const std::string begins = ": begins (";
    for (size_t at = 0; (at = o.output.find(begins, at)) != std::string::npos; ++at) ++begun;
  }
  CHECK(begun == 6);
}

TEST_CASE("a study goes on after a signal that it was started to ignore") {
  const Workplace w;
  write_base(w);
  const std::string study = write_study(w, small_study(w));
  const Outcome o = run_and(
      {"/bin/sh", "-c", "trap '' HUP; exec '" + bamtrain_program() + "' study '" + study + "'"},
      "seed 1: begins", [](int process) { kill(process, SIGHUP); }, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
}

TEST_CASE("a run that another process has is waited for") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  const std::string study = write_study(w, j);
  const std::string folder = w.path("study/runs/alibi_seed-1");
  std::filesystem::create_directories(folder);
  auto held = std::make_unique<FolderLock>(folder);
  const Outcome o = run_and(
      command(study), "another process trains it", [&held](int) { held.reset(); }, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("2 runs: 2 done") != std::string::npos);
}

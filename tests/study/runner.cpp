// bamtrain study, as its users call it.

#include "study/runner.h"

#include <sys/stat.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <regex>
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

/// The tables, and the page without the times, which differ from training to training.
std::string files_of(const std::string& folder) {
  std::string all;
  for (const char* const name : kFiles) all += read_text(folder + "/" + name);
  return std::regex_replace(all, std::regex("<span class=\"time\">[^<]*</span>"), "");
}

/// Runs the sweep without interruption; it must succeed.
Outcome finish(const std::string& study, const std::vector<std::string>& options = {}) {
  const Outcome o = run(command(study, options), threads(2));
  INFO(o.output);
  REQUIRE(o.code == 0);
  return o;
}

/// Runs the sweep in two processes at once.
std::array<Outcome, 2> twice_at_once(const std::string& study) {
  std::array<Outcome, 2> outcomes;
  std::vector<std::jthread> both;
  for (Outcome& o : outcomes) {
    both.emplace_back([&o, &study] { o = run(command(study), threads(1)); });
  }
  for (std::jthread& t : both) t.join();
  return outcomes;
}

int count_of(const std::array<Outcome, 2>& outcomes, const std::string& text) {
  int count = 0;
  for (const Outcome& o : outcomes) {
    for (size_t at = 0; (at = o.output.find(text, at)) != std::string::npos; ++at) ++count;
  }
  return count;
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
  const std::string page = read_text(w.path("study/study.html"));
  CHECK(page.find("<a href=\"runs/alibi_seed-1/report.html\">alibi, seed 1</a>") !=
        std::string::npos);
  CHECK(page.find("6 of 6 runs done, <span class=\"time\">") != std::string::npos);
  // Nothing is left to do.
  const auto written =
      std::filesystem::last_write_time(w.path("study/runs/alibi_seed-1/results.json"));
  const Outcome again = finish(whole);
  CHECK(again.output.find("starting") == std::string::npos);
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
      command(disturbed), "seed 2: starting", [](int process) { kill(process, SIGKILL); },
      threads(1));
  CHECK(killed.code == 128 + SIGKILL);
  finish(disturbed);
  CHECK(files_of(w.path("other")) == files_of(w.path("study")));

  // Additional measurements are made on existing runs.
  j = small_study(w);
  j["set"] = {{"eval.tasks", {{{"task", "copy"}, {"lengths", {9, 18, 27}}, {"samples", 20}}}}};
  const Outcome more = finish(write_study(w, j, "more.json"), {"--jobs", "2"});
  CHECK(more.output.find("resuming from step 12") != std::string::npos);
  CHECK(read_text(w.path("study/table.md")).find("| attention | n | 9 | 18 | 27 |") !=
        std::string::npos);

  // Runs from other folders are reused.
  j = small_study(w);
  j["out_dir"] = w.path("third");
  j["take_over"] = {w.path("other/runs")};
  const Outcome taken = finish(write_study(w, j, "third.json"));
  CHECK(taken.output.find("6 of 6 runs reused from the folders") != std::string::npos);
  CHECK(taken.output.find("starting") == std::string::npos);
  CHECK(taken.output.find("6 done") != std::string::npos);
}

TEST_CASE("a dry run says what is done and what is not, and trains nothing") {
  const Workplace w;
  write_base(w);
  const Outcome o = finish(write_study(w, small_study(w)), {"--dry-run"});
  CHECK(o.output.find("6 runs: 0 done, 6 to do, 1 at a time") != std::string::npos);
  CHECK(o.output.find("of training, at the peak matmul throughput") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("study")));
}

TEST_CASE("a dry run for a GPU that is not here plans where a run's dry run does") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["set"]["device"] = "cuda";
  // No device is visible, whatever the machine has.
  const Environment without = {"CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS=2"};
  const Outcome of_run = run({bamtrain_program(), "--config", w.path("base.json"), "--set",
                              "device=cuda", "--set", "out_dir=" + w.path("one"), "--dry-run"},
                             without);
  const Outcome o = run(command(write_study(w, j), {"--dry-run"}), without);
  INFO(of_run.output << o.output);
  CHECK(o.code == of_run.code);
  CHECK(o.output.find("6 runs: 0 done, 6 to do, 1 at a time") != std::string::npos);
  CHECK((of_run.output.find("no GPU here to measure") != std::string::npos) ==
        (o.output.find("training time is unknown: no GPU here to measure") != std::string::npos));
  CHECK_FALSE(std::filesystem::exists(w.path("study")));
}

TEST_CASE("a dry run refuses folders that the study cannot make") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  const auto refused = [&](const std::string& place) {
    const Outcome o = run(command(write_study(w, j), {"--dry-run"}), threads(2));
    INFO(o.output);
    CHECK(o.code == 6);
    CHECK(o.output.find("bamtrain: " + place + ": cannot create ") != std::string::npos);
    CHECK(o.output.find(": out_dir") != std::string::npos);
  };
  std::ofstream(w.path("file")) << "";
  j["out_dir"] = w.path("file");
  refused(w.path("file"));
  j["out_dir"] = w.path("file/study");
  refused(w.path("file/study"));
  j["out_dir"] = w.path("study");
  std::filesystem::create_directories(w.path("study/runs"));
  std::ofstream(w.path("study/runs/alibi_seed-1")) << "";
  refused(w.path("study/runs/alibi_seed-1"));
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
  CHECK(finish(study).output.find("starting") == std::string::npos);
  // A plan omits the pace of a run that does not report it.
  std::filesystem::remove(w.path("study/runs/alibi_seed-1/metrics.jsonl"));
  CHECK(finish(study, {"--dry-run"}).output.find("3 runs: 2 done") != std::string::npos);
  // The same folder, another learning rate: existing results do not match, and are kept.
  const std::string before = files_of(w.path("study"));
  j["set"] = {{"optimizer.eps", 1e-3}};
  const Outcome refused = run(command(write_study(w, j)), threads(2));
  INFO(refused.output);
  CHECK(refused.code == 3);
  CHECK(refused.output.find("alibi, seed 1: expected") != std::string::npos);
  CHECK(refused.output.find("optimizer.eps") != std::string::npos);
  const Outcome told = run(command(write_study(w, j), {"--dry-run"}), threads(2));
  CHECK(told.code == 3);
  CHECK(told.output.find("3 runs: 0 done, 1 to do, 2 of another configuration") !=
        std::string::npos);
  // Other data, on which a run could resume.
  j["set"] = {{"data.train.length", {4, 9}}};
  const Outcome other = run(command(write_study(w, j)), threads(2));
  INFO(other.output);
  CHECK(other.code == 3);
  CHECK(other.output.find("alibi_seed-1 has a run with another data.train.length") !=
        std::string::npos);
  CHECK(files_of(w.path("study")) == before);
  // A different sweep.
  j = small_study(w);
  j["name"] = "large";
  const Outcome another = run(command(write_study(w, j)), threads(2));
  INFO(another.output);
  CHECK(another.code == 3);
  CHECK(another.output.find("of the study \"small\"") != std::string::npos);
  CHECK(files_of(w.path("study")) == before);
}

TEST_CASE("a run whose folder cannot be had fails alone, and tables that cannot be written later") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  const std::string study = write_study(w, j);
  std::filesystem::create_directories(w.path("study/runs"));
  std::ofstream(w.path("study/runs/alibi_seed-1")) << "a file";
  const Outcome o = run(command(study), threads(2));
  INFO(o.output);
  CHECK(o.code == 6);
  CHECK(o.output.find("alibi, seed 1: failed (6)") != std::string::npos);
  CHECK(o.output.find("2 runs: 1 done, 0 diverged, 1 failed") != std::string::npos);
  CHECK(read_text(w.path("study/table.md")).find("| rope, base 100 | 1 |") != std::string::npos);
  std::filesystem::remove(w.path("study/runs/alibi_seed-1"));
  std::filesystem::remove(w.path("study/table.tex"));
  std::filesystem::create_directories(w.path("study/table.tex/in"));
  const Outcome unwritten = run(command(study), threads(2));
  INFO(unwritten.output);
  CHECK(unwritten.code == 6);
  CHECK(unwritten.output.find("alibi, seed 1: done") != std::string::npos);
}

TEST_CASE("data that are not there are told before another run is trained") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  j["axes"][0]["values"]["no data"] = {{"data.val", w.path("none")}};
  const std::string study = write_study(w, j);
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, std::vector<std::string>{"--dry-run"}}) {
    const Outcome o = run(command(study, options), threads(2));
    INFO(o.output);
    CHECK(o.code == 4);
    CHECK(o.output.find("no data, seed 1: data.val: ") != std::string::npos);
    CHECK(o.output.find("starting") == std::string::npos);
  }
}

TEST_CASE("runs on an earlier file of examples are no runs of a study on the present one") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  const auto append = [&](int first) {
    std::ofstream(w.path("examples.jsonl"), std::ios::app)
        << nlohmann::json{{"prompt", {first, 1}}, {"target", {2}}}.dump() << "\n";
  };
  append(1);
  append(2);
  const ordered_json file = {{"task", "file"}, {"path", w.path("examples.jsonl")}};
  j["axes"] = {{{"key", "seed"}, {"values", {1}}}};
  j["set"] = {{"data", {{"train", file}, {"val", file}, {"sequence_length", 8}}},
              {"model.vocab", 10},
              {"eval", ordered_json::object()}};
  j["measures"] = {"validation/loss"};
  j.erase("reference");
  const std::string study = write_study(w, j);
  finish(study);
  CHECK(finish(study).output.find("starting") == std::string::npos);
  append(3);
  const Outcome o = run(command(study), threads(2));
  INFO(o.output);
  CHECK(o.code == 3);
  CHECK(o.output.find("another data.train") != std::string::npos);
  // Finished runs need no data any more; others do.
  std::filesystem::remove(w.path("examples.jsonl"));
  CHECK(finish(study).output.find("1 run: 1 done") != std::string::npos);
  j["axes"][0]["values"] = {1, 2};
  const Outcome gone = run(command(write_study(w, j)), threads(2));
  INFO(gone.output);
  CHECK(gone.code == 6);
  CHECK(gone.output.find("examples.jsonl: no such file") != std::string::npos);
  CHECK(gone.output.find("starting") == std::string::npos);
}

TEST_CASE("runs on earlier shards are no runs of a study on the present ones") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  write_shard(w.path("train.bin"), 400, 10, 1);
  j["axes"] = {{{"key", "seed"}, {"values", {1}}, {"for", "repeat"}}};
  j["set"] = {{"data", {{"train", w.path("train.bin")}, {"sequence_length", 8}}},
              {"model.vocab", 40},
              {"model.attention.document_mask", false},
              {"eval", {{"tasks", {{{"task", "copy"}, {"lengths", {3}}, {"samples", 4}}}}}}};
  j["measures"] = {"copy@*/loss"};
  j.erase("reference");
  finish(write_study(w, j));
  const std::string before = files_of(w.path("study"));
  write_shard(w.path("train.bin"), 400, 10, 2);  // with the same name and size
  j["axes"][0]["values"] = {1, 2};
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--dry-run"}, {}}) {
    const Outcome o = run(command(write_study(w, j), options), threads(2));
    INFO(o.output);
    CHECK(o.code == 3);
    CHECK(o.output.find("another data.train") != std::string::npos);
  }
  CHECK(files_of(w.path("study")) == before);
}

TEST_CASE("what a study measured on files that have changed it measures anew") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  const auto append = [&](int first) {
    std::ofstream(w.path("examples.jsonl"), std::ios::app)
        << nlohmann::json{{"prompt", {first, 1}}, {"target", {2}}}.dump() << "\n";
  };
  append(1);
  j["axes"] = {{{"key", "seed"}, {"values", {1}}}};
  j["set"] = {{"data.val", {{"task", "file"}, {"path", w.path("examples.jsonl")}}},
              {"eval", ordered_json::object()}};
  j["measures"] = {"validation/loss"};
  j.erase("reference");
  const std::string study = write_study(w, j);
  finish(study);
  const std::string before = read_text(w.path("study/table.md"));
  append(3);
  const Outcome o = finish(study);
  INFO(o.output);
  CHECK(o.output.find("resuming from step 12") != std::string::npos);
  CHECK(read_text(w.path("study/table.md")) != before);
  CHECK(finish(study).output.find("resuming") == std::string::npos);
}

TEST_CASE("a run that diverges under one process is not begun by another that waits for it") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  j["axes"][0]["values"] = {
      {"alibi", ordered_json::object()},
      {"wild", {{"optimizer.lr", 1e30}, {"optimizer.clip", 0}, {"train.steps", 40}}}};
  const std::string study = write_study(w, j);
  const std::array<Outcome, 2> outcomes = twice_at_once(study);
  for (const Outcome& o : outcomes) {
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find("2 runs: 1 done, 1 diverged, 0 failed") != std::string::npos);
  }
  CHECK(count_of(outcomes, "wild, seed 1: starting") == 1);
}

TEST_CASE("two studies of one folder divide its runs") {
  const Workplace w;
  write_base(w);
  const std::string study = write_study(w, small_study(w));
  const std::array<Outcome, 2> outcomes = twice_at_once(study);
  for (const Outcome& o : outcomes) {
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find("6 runs: 6 done, 0 diverged, 0 failed") != std::string::npos);
  }
  CHECK(count_of(outcomes, ": starting (") == 6);
  const std::string table = read_text(w.path("study/table.md"));
  CHECK(table.find("| alibi | 3 |") != std::string::npos);
  CHECK(table.find("| rope, base 100 | 3 |") != std::string::npos);
}

TEST_CASE("a study goes on after a signal that it was started to ignore") {
  const Workplace w;
  write_base(w);
  const std::string study = write_study(w, small_study(w));
  const Outcome o = run_and(
      {"/bin/sh", "-c", "trap '' HUP; exec '" + bamtrain_program() + "' study '" + study + "'"},
      "seed 1: starting", [](int process) { kill(process, SIGHUP); }, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
}

TEST_CASE("a run that another process has is waited for, and in the table where it has ended") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  j["out_dir"] = w.path("before");
  finish(write_study(w, j, "before.json"));
  j["out_dir"] = w.path("study");
  const std::string study = write_study(w, j);
  const std::string folder = w.path("study/runs/alibi_seed-1");
  std::filesystem::create_directories(folder);
  auto held = std::make_unique<FolderLock>(folder);
  const auto end = [&](int) {
    std::filesystem::copy(
        w.path("before/runs/alibi_seed-1"), folder,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_existing);
    held.reset();
  };
  const Outcome o = run_and(command(study), "another process is training it", end, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("2 runs: 2 done") != std::string::npos);
  CHECK(files_of(w.path("study")) == files_of(w.path("before")));
}

TEST_CASE("a run whose folder goes in mid-study is counted as missing, and named") {
  const Workplace w;
  write_base(w);
  const std::string study = write_study(w, small_study(w)),
                    folder = w.path("study/runs/alibi_seed-1");
  const Outcome o = run_and(
      command(study), "alibi, seed 2: starting", [&](int) { std::filesystem::remove_all(folder); },
      threads(1));
  INFO(o.output);
  CHECK(o.code == 6);
  CHECK(o.output.find("alibi, seed 1: failed (6): it had finished, but " + folder +
                      "/results.json is gone") != std::string::npos);
  CHECK(o.output.find("6 runs: 5 done, 0 diverged, 1 failed") != std::string::npos);
  CHECK(read_text(w.path("study/table.md")).find("| alibi | 2 of 3 |") != std::string::npos);
  CHECK(finish(study).output.find("6 runs: 6 done") != std::string::npos);
}

TEST_CASE("a complete table stays where a run's results are damaged, until they are there again") {
  const Workplace w;
  write_base(w);
  const std::string study = write_study(w, small_study(w));
  finish(study, {"--jobs", "2"});
  const std::string before = files_of(w.path("study")),
                    results = w.path("study/runs/alibi_seed-1/results.json");
  const std::string whole = read_text(results);
  std::string text = whole;
  const size_t loss = text.find("\"loss\": ") + 8;
  text[loss] = static_cast<char>(text[loss] ^ 1);  // flips the lowest bit of the first digit
  std::ofstream(results) << text;
  const Outcome o = run(command(study), threads(1));
  INFO(o.output);
  CHECK(o.code == 6);
  CHECK(o.output.find("alibi, seed 1: failed (6): " + results + ": digest: mismatch") !=
        std::string::npos);
  CHECK(o.output.find("tables not updated: the results of alibi, seed 1 are missing or damaged") !=
        std::string::npos);
  CHECK(o.output.find("6 runs: 5 done, 0 diverged, 1 failed") != std::string::npos);
  CHECK(files_of(w.path("study")) == before);
  SECTION("restored") { std::ofstream(results) << whole; }
  SECTION("removed, and measured anew") { std::filesystem::remove(results); }
  finish(study);
  CHECK(files_of(w.path("study")) == before);
}

TEST_CASE("tables of another configuration do not stay, whatever fails with the new one") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  finish(write_study(w, j), {"--jobs", "2"});
  const std::string before = read_text(w.path("study/table.md")),
                    log = w.path("study/logs/alibi_seed-1.log");
  j["set"] = {{"optimizer.lr", 1e-5}};
  std::filesystem::remove_all(w.path("study/runs"));
  std::filesystem::remove(log);
  REQUIRE(mkfifo(log.c_str(), 0600) == 0);  // opening it fails
  const Outcome o = run(command(write_study(w, j)), threads(1));
  INFO(o.output);
  CHECK(o.code == 6);
  CHECK(o.output.find("6 runs: 5 done, 0 diverged, 1 failed") != std::string::npos);
  CHECK(o.output.find("tables not updated") == std::string::npos);
  CHECK(read_text(w.path("study/table.md")) != before);
}

TEST_CASE("a pipe in the place of a run's log is refused and not waited for") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  const std::string study = write_study(w, j), log = w.path("study/logs/alibi_seed-1.log");
  std::filesystem::create_directories(w.path("study/logs"));
  REQUIRE(mkfifo(log.c_str(), 0600) == 0);
  const Outcome o = run(command(study), threads(1));
  INFO(o.output);
  CHECK(o.code == 6);
  CHECK(o.output.find("alibi, seed 1: failed (6): " + log +
                      ": expected a regular file, found a pipe") != std::string::npos);
  CHECK(o.output.find("2 runs: 1 done, 0 diverged, 1 failed") != std::string::npos);
}

TEST_CASE("runs of a study that a launcher has started know nothing of it") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1};
  j["axes"][0]["values"]["wild"] = {{"optimizer.lr", 1e30}, {"optimizer.clip", 0}};
  const std::string study = write_study(w, j);
  std::vector<std::string> words = command(study);
  SECTION("mpirun") {
    if (!have_mpi()) {
      WARN("skipped: built without MPI");
      return;
    }
    words = mpirun_command(1, words);
  }
  SECTION("one that says its number of processes") {
    words.insert(words.begin(), {"env", "PMI_SIZE=1"});
  }
  const Outcome o = run(words, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("3 runs: 2 done, 1 diverged, 0 failed") != std::string::npos);
  CHECK(o.output.find("wild, seed 1: diverged: bamtrain: ") != std::string::npos);
  CHECK(read_text(w.path("study/diverged/wild_seed-1.json")).find("-----") == std::string::npos);
}

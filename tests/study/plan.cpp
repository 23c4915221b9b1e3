// The runs of a sweep.

#include "study/plan.h"

#include <filesystem>
#include <fstream>

#include "record/results.h"
#include "study/fixture.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::ordered_json;

namespace {

std::vector<StudyRun> plan(const Workplace& w, const ordered_json& study) {
  return runs_of(read_study(write_study(w, study)));
}

/// Checks that the sweep is refused, with these parts in the message.
void check_refused(const Workplace& w, const ordered_json& study,
                   std::initializer_list<const char*> parts) {
  const std::string text = config_error([&] { plan(w, study); });
  INFO(text);
  for (const char* const part : parts) CHECK(text.find(part) != std::string::npos);
}

/// Writes results as a run does.
void write_results(const StudyRun& run, const nlohmann::json& config) {
  std::filesystem::create_directories(run.folder);
  Results results(run.folder + "/" + kResultsFile);
  results.set_run(run.slug, config);
  results.set_complete();
  results.write();
}

}  // namespace

TEST_CASE("every combination of values is a run: rows, then choices, then repeats") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  const ordered_json rates = {{"key", "optimizer.lr"}, {"values", {1e-3, 2e-3}}, {"for", "choose"}};
  j["axes"].insert(j["axes"].begin(), rates);
  j["set"] = {{"train.steps", 9}};
  const std::vector<StudyRun> runs = plan(w, j);
  REQUIRE(runs.size() == 12);
  CHECK(runs[0].label == "alibi, lr 0.001, seed 1");
  CHECK(runs[1].label == "alibi, lr 0.001, seed 2");
  CHECK(runs[3].label == "alibi, lr 0.002, seed 1");
  CHECK(runs[11].label == "rope, base 100, lr 0.002, seed 3");
  CHECK(runs[11].row == "rope, base 100");
  CHECK(runs[11].chosen == std::vector<std::string>{"0.002"});
  CHECK(runs[11].repeats == std::vector<std::string>{"3"});
  CHECK(runs[11].slug == "lr-0.002_rope-base-100_seed-3");
  const RunConfig& c = runs[11].config;
  CHECK(c.seed == 3);
  CHECK(c.optimizer.lr == 2e-3);
  CHECK(c.train.steps == 9);
  CHECK(c.model.attention.prior.pattern[0].name() == "rope");
  CHECK(c.name == runs[11].slug);
  CHECK(c.out_dir == w.path("study") + "/runs/" + runs[11].slug);
}

TEST_CASE("what makes no run is refused with the run's label") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["values"] = {1, -2};
  check_refused(w, j, {"alibi, seed -2", "seed"});
  j = small_study(w);
  j["axes"][1]["key"] = "sede";
  check_refused(w, j, {"sede", "did you mean seed?"});
  j = small_study(w);
  j["reference"] = "rope";
  check_refused(w, j, {"reference", "alibi"});
  j = small_study(w);
  j["axes"][0]["values"]["rope. base 100"] = {{"model.attention.prior", "rope"}};
  j["axes"][0]["values"]["rope; base 100"] = {{"model.attention.prior", "nope"}};
  check_refused(w, j, {"rope; base 100", "letters and digits"});
  j = small_study(w);
  j["axes"][0]["values"][std::string(201, 'a')] = {{"model.attention.prior", "nope"}};
  check_refused(w, j, {"aaa", "at most 200"});
  j = small_study(w);
  j["axes"] = {{{"name", "x"}, {"values", {{"..", ordered_json::object()}}}}};
  j.erase("reference");
  check_refused(w, j, {"..", "name a folder"});
  // The same run twice, and two runs that would be one row.
  j = small_study(w);
  j["axes"][1]["values"] = {{"a", 1}, {"b", 1}};
  check_refused(w, j, {"alibi, seed a", "alibi, seed b", "the same configuration"});
  j = small_study(w);
  j["axes"] = {
      {{"name", "x"}, {"values", {{"a", {{"seed", 1}}}, {"a, b", {{"seed", 2}}}}}},
      {{"name", "y"}, {"values", {{"b, c", {{"train.steps", 9}}}, {"c", {{"train.steps", 10}}}}}}};
  j.erase("reference");
  check_refused(w, j, {"the row \"a, b, c\""});
}

TEST_CASE("a study measures and chooses by what its runs have") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["measures"] = {"copy@*/loss", "copy@*/exact"};
  check_refused(w, j, {"measures", "copy@*/exact", "copy@9/exact_match", "validation/accuracy"});
  j["measures"] = {"copy@*/bleu"};
  check_refused(w, j, {"copy@*/bleu"});
  j = small_study(w);
  j["choose"] = {{"metric", "validation/los"}, {"mode", "min"}};
  CHECK(plan(w, j).size() == 6);  // no hyperparameter to choose
  j["axes"].push_back({{"key", "optimizer.lr"}, {"values", {1e-3, 2e-3}}, {"for", "choose"}});
  check_refused(w, j, {"choose.metric", "did you mean validation/loss?"});
  j["choose"] = {{"metric", "copy@9/loss"}, {"mode", "max"}};
  check_refused(w, j, {"choose.mode", "min with copy@9/loss, where lower is better"});
  j["choose"] = {{"metric", "copy@9/accuracy"}, {"mode", "min"}};
  check_refused(w, j, {"choose.mode", "max with copy@9/accuracy"});
}

TEST_CASE("a run is done where its results are those of its configuration, all of them") {
  const Workplace w;
  write_base(w);
  const Study study = read_study(write_study(w, small_study(w)));
  const std::vector<StudyRun> runs = runs_of(study);
  using Kind = RunState::Kind;
  const auto kind = [&](size_t i) { return state_of(study, runs[i]).kind; };
  CHECK(kind(0) == Kind::to_do);
  write_results(runs[0], runs[0].resolved);
  CHECK(kind(0) == Kind::done);
  // Results from before config_version 3, with an earlier name of a key.
  nlohmann::json earlier = runs[0].resolved;
  earlier["config_version"] = 2;
  earlier["eval"].erase("require_all_lengths");
  earlier["eval"]["insist"] = false;
  write_results(runs[0], earlier);
  CHECK(kind(0) == Kind::done);
  earlier["eval"]["insist"] = true;
  write_results(runs[0], earlier);
  CHECK(kind(0) != Kind::done);
  write_results(runs[0], runs[0].resolved);
  // A label and its place do not matter.
  nlohmann::json other = runs[0].resolved;
  other["name"] = "x";
  other["out_dir"] = "y";
  write_results(runs[0], other);
  CHECK(kind(0) == Kind::done);
  for (const auto& [path, value] :
       std::map<std::string, nlohmann::json>{{"/seed", 7},
                                             {"/eval/tasks/0/samples", 21},
                                             {"/checkpoint/best/mode", "max"},
                                             {"/data/train/length", {3, 8}},
                                             {"/data/val/length", {3, 8}},
                                             {"/init_from/folder", "x"}}) {
    INFO(path);
    other = runs[0].resolved;
    other[nlohmann::json::json_pointer(path)] = value;
    write_results(runs[0], other);
    CHECK(kind(0) != Kind::done);
  }
  Results incomplete(runs[1].folder + "/" + kResultsFile);
  std::filesystem::create_directories(runs[1].folder);
  incomplete.set_run("", runs[1].resolved);
  incomplete.write();
  CHECK(kind(1) == Kind::to_do);
  // A damaged checkpoint belongs to one run, which may resume from another checkpoint.
  std::filesystem::create_directories(runs[1].folder + "/checkpoint-00000002");
  std::ofstream(runs[1].folder + "/checkpoint-00000002/state.json") << "{";
  CHECK(kind(1) == Kind::begun);
  std::ofstream(incomplete.path()) << "{";
  CHECK(kind(1) == Kind::damaged);
  CHECK(state_of(study, runs[1]).code == ExitCode::io);
  CHECK(state_of(study, runs[1]).message.find(incomplete.path()) != std::string::npos);
  record_diverged(study, runs[2], "step 3: expected a finite loss");
  CHECK(kind(2) == Kind::diverged);
  CHECK(state_of(study, runs[2]).message == "step 3: expected a finite loss");
  // With a different config, the run no longer counts as diverged.
  ordered_json changed = small_study(w);
  changed["set"] = {{"optimizer.lr", 1e-4}};
  const Study later = read_study(write_study(w, changed));
  CHECK(state_of(later, runs_of(later)[2]).kind == Kind::to_do);
}

TEST_CASE("axes that make more runs than anyone trains are refused before any is made") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w), values = ordered_json::array();
  for (int i = 0; i <= 5000; ++i) values.push_back(i);
  j["axes"][1]["values"] = values;
  check_refused(w, j, {"axes", "at most 10000 runs", "more, from the axis \"seed\" on"});
  Study most;
  most.axes.resize(2);
  most.axes[0].values.resize(2);
  most.axes[1].values.resize(5000);
  CHECK_NOTHROW(check_run_count(most));
}

TEST_CASE("keys of a study are no options of a command line") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  j["axes"][1]["key"] = "model..width";
  check_refused(w, j, {"study.json: alibi, width 1"});
}

TEST_CASE("a folder of take_over is of one run: one that is done there, or the first") {
  const Workplace w;
  write_base(w);
  ordered_json j = small_study(w);
  const auto tasks = [](int samples) {
    return ordered_json{
        {"eval.tasks", {{{"task", "copy"}, {"lengths", {9}}, {"samples", samples}}}}};
  };
  j["axes"] = {{{"name", "samples"}, {"values", {{"few", tasks(10)}, {"many", tasks(20)}}}}};
  j["measures"] = {"copy@9/loss"};
  j.erase("reference");
  // One trained run: its measurements may change.
  const std::vector<StudyRun> alone = plan(w, j);
  const auto checkpoint = [&](const std::string& folder, const StudyRun& run, const char* step) {
    std::filesystem::create_directories(folder + "/checkpoint-" + step);
    std::ofstream(folder + "/checkpoint-" + step + "/state.json")
        << nlohmann::json{{"config", run.resolved}}.dump();
  };
  const auto taken = [&] {
    std::vector<std::string> folders;
    for (const StudyRun& run : plan(w, j)) {
      folders.push_back(run.reused ? std::filesystem::path(run.folder).filename() : "");
    }
    return folders;
  };
  using Folders = std::vector<std::string>;
  j["take_over"] = {w.path("b"), w.path("a")};
  CHECK(taken() == Folders{"", ""});
  checkpoint(w.path("b/first"), alone[0], "00000003");
  CHECK(taken() == Folders{"first", ""});
  checkpoint(w.path("a/second"), alone[0], "00000006");
  CHECK(taken() == Folders{"second", "first"});
  // Measured as the second run asks.
  StudyRun there = alone[1];
  there.folder = w.path("a/second");
  write_results(there, there.resolved);
  CHECK(taken() == Folders{"first", "second"});
}

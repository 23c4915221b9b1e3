// eval.tasks, results.json and checkpoint.best of whole runs: what is measured, on which
// checkpoint, and that it is the same however the run is executed.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "config/reader.h"
#include "eval/task_scores.h"
#include "ops/cpu/cpu.h"
#include "record/run_files.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// 8 steps on copies. Every second step is measured on copies of 4 and 100 tokens, the longer in
/// two batches; the end also on flip_flop. All checkpoints of even steps are kept.
json measured_run(const Workplace& w) {
  json c = small_run(w);
  const json copy = {{"task", "copy"}, {"length", {3, 30}}};
  c["model"].erase("vocab");
  c["model"]["attention"]["document_mask"] = false;
  c["data"] = {{"train", copy}, {"val", copy}};
  c["schedule"] = {{"name", "constant"}};
  c["train"] = {{"steps", 8}, {"sequences_per_step", 16}, {"micro_batch", 2}, {"lanes", 4}};
  c["checkpoint"] = {{"every", 2}, {"keep", 10}};
  c["eval"] = {
      {"tokens", 500},
      {"every", 2},
      {"tasks",
       {{{"task", "copy"}, {"lengths", {4, 100}}, {"samples", 60}, {"seed", 5}, {"every", 2}},
        {{"task", "flip_flop"},
         {"ignore", "dense"},
         {"lengths", {9}},
         {"samples", 20},
         {"name", "flips"}}}}};
  return c;
}

/// The loss falls, so the checkpoint with the highest loss is not the last.
json with_best(json c, const std::string& metric = "copy@100/loss",
               const std::string& mode = "max") {
  c["checkpoint"]["best"] = {{"metric", metric}, {"mode", mode}};
  return c;
}

std::string train_measured(const Workplace& w, const json& config, const std::string& out,
                           int processes = 1, const std::vector<std::string>& overrides = {}) {
  const Outcome o = run_config_into(w, config, out, overrides, processes);
  INFO(o.output);
  REQUIRE(o.code == 0);
  return o.output;
}

std::string checkpoint_of(const Workplace& w, const std::string& out, int64_t step) {
  return w.path(out) + "/" + checkpoint_name(step);
}

/// The changed results look like an earlier program's, which have no digest.
void change_results(const Workplace& w, const std::string& out,
                    const std::function<void(json&)>& change) {
  const std::string path = w.path(out) + "/results.json";
  json all = json::parse(read_text(path));
  change(all["results"]);
  all["format"] = 1;
  all.erase("digest");
  std::ofstream(path) << all;
}

json best_of(const Workplace& w, const std::string& out, int64_t step = 8) {
  return json::parse(read_text(checkpoint_of(w, out, step) + "/state.json")).value("best", json());
}

std::vector<std::string> whole_checkpoints_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (checkpoint_step(entry.path().filename())) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Lines of metrics.jsonl without machine-dependent values.
std::vector<json> repeatable_lines(const Workplace& w, const std::string& out) {
  std::vector<json> lines = read_metrics(w.path(out));
  for (json& line : lines) {
    for (const char* key : {"tokens_per_second", "seconds", "data_wait", "matrix_rate_share"}) {
      line.erase(key);
    }
  }
  return lines;
}

/// The step after `from`, up to `to`, that has the highest or lowest loss on copies of this length.
int64_t extreme(const Workplace& w, const std::string& out, const char* result, bool highest,
                int64_t from = 0, int64_t to = 8) {
  int64_t step = 0;
  double most = 0;
  for (const json& line : repeatable_lines(w, out)) {
    if (!line.contains("tasks") || line["step"] <= from || line["step"] > to) continue;
    const double loss = line["tasks"][result]["loss"];
    if (step != 0 && (highest ? loss <= most : loss >= most)) continue;
    step = line["step"];
    most = loss;
  }
  return step;
}

/// Everything that a run writes about what it computed.
json bits_of(const Workplace& w, const std::string& out) {
  json bits = {
      {"results",
       nlohmann::ordered_json::parse(read_text(w.path(out) + "/results.json"))["results"].dump()},
      {"lines", repeatable_lines(w, out)},
      {"best", best_of(w, out)}};
  for (const int64_t step : {2, 4, 6, 8}) {  // a run stopped by a signal also has another one
    bits["checkpoints"].push_back(digest(checkpoint_of(w, out, step)));
  }
  return bits;
}

/// A checkpoint's scores, computed outside of a run.
json scores(const Workplace& w, const std::string& out, int64_t step, size_t entry, int64_t length,
            TaskSet set) {
  json config = json::parse(read_text(w.path(out + ".json")));
  const RunConfig c = read_run_config_text(config.dump(), "run.json", {});
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const ParameterLayout layout(c.model, c.data.sequence_length);
  Arena arena;
  Tensor master_weights;
  arena.add("masters", &master_weights, Dtype::f32, {layout.elements()});
  arena.commit();
  read_tensors(SafetensorsFile::open(open_checkpoint(checkpoint_of(w, out, step)).model_file()),
               model_tensors(layout, master_weights));
  const ScoredModel model = {c.model, c.data.sequence_length, *backend, Dtype::f32, master_weights};
  return score_task(c.eval.tasks.at(entry).trained(), length, set, model, {}, [](double) {});
}

}  // namespace

TEST_CASE(
    "a run is measured on sequences of its own while it trains, and its best checkpoint on"
    " those of the test at its end") {
  const Workplace w;
  const json c = with_best(measured_run(w));
  const std::string output = train_measured(w, c, "out");
  const std::vector<json> lines = repeatable_lines(w, "out");
  REQUIRE(lines.size() == 8);
  const int64_t best = extreme(w, "out", "copy@100", true);
  for (const json& line : lines) {
    const int64_t step = line["step"];
    INFO("step " << step);
    REQUIRE(line.contains("tasks") == (step % 2 == 0));
    if (step % 2 != 0) continue;
    CHECK(line["tasks"].size() == 2);
    for (const int64_t length : {4, 100}) {
      CHECK(line["tasks"]["copy@" + std::to_string(length)] ==
            scores(w, "out", step, 0, length, TaskSet::select));
    }
  }
  REQUIRE(best < 8);
  const json of_state = best_of(w, "out");
  CHECK(of_state["metric"] == "copy@100/loss");
  CHECK(of_state["mode"] == "max");
  CHECK(of_state["step"] == best);
  CHECK(of_state["value"] == lines[static_cast<size_t>(best - 1)]["tasks"]["copy@100"]["loss"]);
  CHECK(output.find("checkpoint " + checkpoint_of(w, "out", best) + ": best copy@100/loss\n") !=
        std::string::npos);

  const json all = json::parse(read_text(w.path("out/results.json")));
  CHECK(all["config"]["eval"]["tasks"].size() == 2);
  CHECK(all["name"] == "small");
  json results = all["results"];
  CHECK(results.size() == 4);
  const auto check = [&](const std::string& name, size_t entry, int64_t length) {
    INFO(name);
    json row = results[name];
    CHECK(row["step"] == best);
    CHECK(row["of"]["samples"] == row["sequences"]);
    row.erase("step");
    row.erase("of");
    CHECK(row == scores(w, "out", best, entry, length, TaskSet::test));
  };
  check("copy@4", 0, 4);
  check("copy@100", 0, 100);
  check("flips@9", 1, 9);
  CHECK(results["flips@9"]["of"]["ignore"] == "dense");
  const json& line = lines[static_cast<size_t>(best - 1)];
  CHECK(results["validation"]["step"] == best);
  CHECK(results["validation"]["loss"] == line["validation_loss"]);
  CHECK(results["validation"]["loss_error"] == line["validation_loss_error"]);
  CHECK(results["validation"]["exact_match"] == line["validation_exact_match"]);

  // bamtrain eval gives the same numbers.
  const Outcome o = run(
      {bamtrain_program(), "eval", "--checkpoint", checkpoint_of(w, "out", best), "--task", "copy",
       "--lengths", "4,100", "--samples", "60", "--seed", "5", "--output", w.path("eval.json")},
      threads(2));
  INFO(o.output);
  REQUIRE(o.code == 0);
  const json evaluated = json::parse(read_text(w.path("eval.json")));
  for (json row : evaluated["scores"]) {
    const std::string name = "copy@" + row["length"].dump();
    row.erase("length");
    for (const auto& [key, value] : row.items()) CHECK(results[name][key] == value);
  }

  // Without measurements, the run computes the same.
  json plain = c;
  plain["eval"].erase("tasks");
  plain["checkpoint"].erase("best");
  train_measured(w, plain, "plain");
  CHECK(digest(checkpoint_of(w, "plain", 8)) == digest(checkpoint_of(w, "out", 8)));
  CHECK(best_of(w, "plain").is_null());
  CHECK(read_results(w.path("plain")).size() == 1);
  CHECK(read_results(w.path("plain"))["validation"]["step"] == 8);
  CHECK(read_results(w.path("plain"))["validation"]["loss"] == lines.back()["validation_loss"]);
}

TEST_CASE("measures are the same bits for every number of processes, and over every interruption") {
  const Workplace w;
  const json c = with_best(measured_run(w));
  train_measured(w, c, "straight");
  const json straight = bits_of(w, "straight");
  if (have_mpi()) {
    for (const int processes : {2, 3}) {
      const std::string out = std::to_string(processes);
      train_measured(w, c, out, processes);
      CHECK((bits_of(w, out) == straight));
    }
  }
  train_measured(w, c, "stopped", 1, {"train.stop_at=4"});
  train_measured(w, c, "stopped", have_mpi() ? 2 : 1);
  CHECK((bits_of(w, "stopped") == straight));
  // Signals at different points.
  const struct {
    const char* marker;
    int signal;
  } ends[] = {{"step 2 copy@4 ", SIGTERM},
              {"step 6 copy@4 ", SIGKILL},
              {"\ncheckpoint ", SIGTERM},
              {"copy@4 of step ", SIGKILL}};
  int ended = 0;
  for (const auto& end : ends) {
    INFO(end.marker);
    const std::string out = "ended" + std::to_string(ended++);
    json config = c;
    config["out_dir"] = w.path(out);
    const Outcome o = run_and(
        bamtrain_command(write_config(w, out + ".json", config)), end.marker,
        [&](int process) { kill(process, end.signal); }, threads(1));
    CHECK((o.code == 0 || o.code == 85 || o.code == 128 + SIGKILL));
    train_measured(w, c, out);
    CHECK((bits_of(w, out) == straight));
  }
}

TEST_CASE("what results.json has of the same weights is not measured again") {
  const Workplace w;
  const json c = measured_run(w);
  train_measured(w, c, "out");
  const json whole = read_results(w.path("out"));
  // As left by an evaluation that ended after its first length.
  change_results(w, "out", [](json& results) {
    results.erase("copy@100");
    results.erase("flips@9");
    results["copy@4"]["loss"] = 123;
  });
  const std::string output = train_measured(w, c, "out");
  CHECK(output.find("copy@4 of step") == std::string::npos);
  CHECK(output.find("copy@100 of step 8: loss ") != std::string::npos);
  json results = read_results(w.path("out"));
  CHECK(results["copy@4"]["loss"] == 123);
  results["copy@4"] = whole["copy@4"];
  CHECK(results == whole);
  // Results of other weights, samples or precision, and results that no key asks for any more.
  for (const char* key : {"weights", "samples", "seed", "precision", "task"}) {
    INFO(key);
    change_results(w, "out", [&](json& r) {
      r["copy@4"]["loss"] = 123;
      r["copy@4"]["of"][key] = "other";
      r["copy@5"] = r["copy@4"];
    });
    train_measured(w, c, "out");
    CHECK(read_results(w.path("out")) == whole);
  }
  json other = c;
  other["eval"]["tasks"][0]["seed"] = 6;
  other["eval"]["tasks"].erase(1);
  train_measured(w, other, "out");
  results = read_results(w.path("out"));
  CHECK(results.size() == 3);
  CHECK(results["copy@4"]["of"]["seed"] == 6);
  CHECK(results["copy@4"]["loss"] != whole["copy@4"]["loss"]);
  CHECK(results["validation"] == whole["validation"]);
  // A deleted file.
  fs::remove(w.path("out/results.json"));
  train_measured(w, c, "out");
  CHECK(read_results(w.path("out")) == whole);
}

TEST_CASE("a run that has ended is validated anew where its results lack that, or have another") {
  const Workplace w;
  for (const bool best : {false, true}) {
    INFO(best);
    const std::string out = best ? "best" : "out";
    const json c = best ? with_best(measured_run(w)) : measured_run(w);
    train_measured(w, c, out);
    const json whole = read_results(w.path(out));
    CHECK((whole["validation"]["step"] == 8) == !best);
    fs::remove(w.path(out) + "/results.json");
    train_measured(w, c, out);
    CHECK(read_results(w.path(out)) == whole);
    json fewer = c;
    fewer["eval"]["tokens"] = 100;
    train_measured(w, fewer, out, best ? 2 : 1);
    const json other = read_results(w.path(out));
    CHECK(other["validation"]["step"] == whole["validation"]["step"]);
    CHECK(other["validation"]["loss"] != whole["validation"]["loss"]);
    train_measured(w, c, out);
    CHECK(read_results(w.path(out)) == whole);
  }
}

TEST_CASE("a results.json that cannot be continued ends the run before its first step") {
  const Workplace w;
  const json c = measured_run(w);
  train_measured(w, c, "out", 1, {"train.stop_at=2"});
  const std::string path = w.path("out/results.json");
  std::string part;
  SECTION("damaged") {
    std::ofstream(path) << "{";
    part = "remove the file";
  }
  SECTION("a folder") {
    fs::remove(path);
    fs::create_directory(path);
    part = "move the existing file elsewhere";
  }
  const std::vector<json> before = repeatable_lines(w, "out");
  for (const int processes : {1, 2}) {
    if (processes > 1 && !have_mpi()) continue;
    const Outcome o = run_config_into(w, c, "out", {}, processes);
    INFO(o.output);
    CHECK(o.code == 6);
    CHECK(o.output.find(path) != std::string::npos);
    CHECK(o.output.find(part) != std::string::npos);
    CHECK(repeatable_lines(w, "out") == before);
  }
}

TEST_CASE("the best checkpoint stays beside the newest, and gives way to a better one") {
  const Workplace w;
  json c = with_best(measured_run(w));
  c["checkpoint"]["keep"] = 1;
  train_measured(w, c, "out");
  const int64_t best = best_of(w, "out")["step"];
  REQUIRE(best < 8);
  using Names = std::vector<std::string>;
  CHECK(whole_checkpoints_in(w.path("out")) == Names{checkpoint_name(best), checkpoint_name(8)});
  c["checkpoint"]["best"]["mode"] = "min";
  c["checkpoint"]["best"]["metric"] = "validation/loss";
  c["checkpoint"]["every"] = 0;  // the best checkpoint is saved anyway
  train_measured(w, c, "least");
  int64_t least = 0;
  double loss = 1e9;
  for (const json& line : repeatable_lines(w, "least")) {
    if (!line.contains("validation_loss") || line["validation_loss"] >= loss) continue;
    loss = line["validation_loss"];
    least = line["step"];
  }
  CHECK(best_of(w, "least")["step"] == least);
  CHECK(best_of(w, "least")["value"] == loss);
  CHECK(read_results(w.path("least"))["validation"]["loss"] == loss);
  CHECK(read_results(w.path("least"))["copy@4"]["step"] == least);
}

TEST_CASE("the best of a run that was stopped and went on is that of one that was not") {
  const Workplace w;
  json c = with_best(measured_run(w));
  c["eval"]["tasks"][0]["every"] = 3;  // after 3, 6 and 8 steps
  train_measured(w, c, "straight");
  const json best = best_of(w, "straight");
  for (const int stop : {2, 4, 5, 7}) {
    INFO("stopped at " << stop);
    const std::string out = "stopped-" + std::to_string(stop);
    // A stopped run has results, of the best checkpoint so far.
    const std::string output =
        train_measured(w, c, out, 1, {"train.stop_at=" + std::to_string(stop)});
    const int64_t so_far = stop == 2 ? 2 : extreme(w, out, "copy@100", true, 0, stop == 7 ? 6 : 3);
    CHECK(read_results(w.path(out))["copy@100"]["step"] == so_far);
    CHECK(best_of(w, out, stop).contains("at_stop") == (stop == 2));
    train_measured(w, c, out);
    CHECK(best_of(w, out) == best);
    CHECK(read_results(w.path(out)) == read_results(w.path("straight")));
  }
}

TEST_CASE("the best is sought anew where it is gone or damaged, or was chosen by another measure") {
  const Workplace w;
  const json c = with_best(measured_run(w));
  train_measured(w, c, "begun", 1, {"train.stop_at=4"});
  const int64_t first = best_of(w, "begun", 4)["step"];
  REQUIRE(first < 4);
  const std::string anew = "warning: the best checkpoint so far, of step " + std::to_string(first);
  const auto resumed = [&](const std::string& out, const json& config, const std::string& told) {
    fs::copy(w.path("begun"), w.path(out), fs::copy_options::recursive);
    if (out == "gone") fs::remove_all(checkpoint_of(w, out, first));
    const std::string output = train_measured(w, config, out);
    INFO(output);
    CHECK((output.find(anew) != std::string::npos) == !told.empty());
    CHECK(output.find(told) != std::string::npos);
  };
  resumed("same", c, "");
  CHECK(best_of(w, "same")["step"] == extreme(w, "same", "copy@100", true));
  resumed("gone", c, anew + ", is not in " + w.path("gone"));
  CHECK(best_of(w, "gone")["step"] == extreme(w, "gone", "copy@100", true, 4));

  fs::copy(w.path("begun"), w.path("damaged"), fs::copy_options::recursive);
  fs::resize_file(checkpoint_of(w, "damaged", first) + "/model.safetensors", 100);
  const std::string output = train_measured(w, c, "damaged");
  CHECK(output.find(anew + ", is damaged (" + checkpoint_of(w, "damaged", first)) !=
        std::string::npos);
  CHECK(best_of(w, "damaged")["step"] == extreme(w, "damaged", "copy@100", true, 4));

  const std::string other = anew + ", was chosen by another metric; starting the search again";
  resumed("metric", with_best(c, "copy@4/loss", "max"), other);
  CHECK(best_of(w, "metric")["step"] == extreme(w, "metric", "copy@4", true, 4));
  CHECK(best_of(w, "metric")["metric"] == "copy@4/loss");
  resumed("mode", with_best(c, "copy@100/loss", "min"), other);
  CHECK(best_of(w, "mode")["step"] == extreme(w, "mode", "copy@100", false, 4));
  json sequences = c;  // other sequences under the same name
  sequences["eval"]["tasks"][0]["seed"] = 9;
  resumed("sequences", sequences, other);
  CHECK(best_of(w, "sequences")["step"] == extreme(w, "sequences", "copy@100", true, 4));

  json none = c;
  none["checkpoint"].erase("best");
  resumed("none", none, "");
  CHECK(best_of(w, "none").is_null());
  CHECK(read_results(w.path("none"))["copy@4"]["step"] == 8);
}

TEST_CASE("a checkpoint's best is read with nothing believed") {
  const Workplace w;
  const json c = with_best(measured_run(w));
  train_measured(w, c, "out", 1, {"train.stop_at=2"});
  const auto refused = [&](const char* key, const json& value) {
    forge_state(checkpoint_of(w, "out", 2), [&](json& state) { state["best"][key] = value; });
    const Outcome o = run_config_into(w, c, "out");
    INFO(o.output);
    CHECK(o.code == 5);
    CHECK(o.output.find("best." + std::string(key)) != std::string::npos);
  };
  const json good = best_of(w, "out", 2);
  for (const char* key : {"metric", "mode", "step", "value", "of", "validation"}) {
    refused(key, json::array());
    forge_state(checkpoint_of(w, "out", 2), [&](json& state) { state["best"] = good; });
  }
  train_measured(w, c, "out");
}

TEST_CASE("--dry-run tells the memory that tasks take beside the steps and after them") {
  const Workplace w;
  json c = measured_run(w);
  const auto figure = [&](const json& config, const std::string& label) {
    auto command = bamtrain_command(write_config(w, "dry.json", config));
    command.push_back("--dry-run");
    const Outcome o = run(command, threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    const size_t at = o.output.find("\n  " + label + " ");
    return at == std::string::npos ? 0.0 : std::stod(o.output.substr(at + 3 + label.size()));
  };
  const double beside = figure(c, "+ tasks"), after = figure(c, "final evaluation");
  // Memory of the passes grows with the tokens per batch: 8,192 / 202 sequences of 202.
  CHECK(beside > 0);
  CHECK(after > beside);
  json longer = c;
  longer["eval"]["tasks"][0]["lengths"] = {4, 100, 1000};
  longer["eval"]["tasks"][0]["samples"] = 1;
  CHECK(figure(longer, "+ tasks") != beside);
  json at_end = c;
  at_end["eval"]["tasks"][0].erase("every");
  CHECK(figure(at_end, "+ tasks") == 0);
  CHECK(figure(at_end, "final evaluation") == after);
  at_end["eval"].erase("tasks");
  CHECK(figure(at_end, "final evaluation") == 0);
  CHECK_FALSE(fs::exists(w.path("out")));
}

TEST_CASE("measures go on on two backends at once") {
  const Workplace w;
  json c = with_best(measured_run(w));
  c["device"] = "check";
  c["train"]["steps"] = 2;
  c["eval"]["tasks"][0]["samples"] = 3;
  train_measured(w, c, "out");
  CHECK(read_results(w.path("out")).size() == 4);
}

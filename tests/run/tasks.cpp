// Runs on tasks: bitwise identical however they are executed, the loss as a mean over a step's
// targets, what resuming refuses, and that a model learns a task.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "config/fixture.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using nlohmann::json;

/// 8 steps of 16 sequences in 4 lanes.
json task_run(const Workplace& w, json task) {
  json c = small_run(w);
  c["model"].erase("vocab");
  c["model"]["attention"]["document_mask"] = false;
  c["data"] = {{"train", task}, {"val", task}};
  c["train"] = {{"steps", 8}, {"sequences_per_step", 16}, {"micro_batch", 2}, {"lanes", 4}};
  c["eval"] = {{"tokens", 2000}};
  return c;
}

json copy() { return {{"task", "copy"}, {"length", {3, 30}}}; }

struct Run {
  std::string bits;  // of the last checkpoint
  std::vector<json> metrics;
};

Run train_task(const Workplace& w, const json& config, const std::string& out, int processes = 1,
               int threads_per_process = 1) {
  const Outcome o = run_config_into(w, config, out, {}, processes, threads_per_process);
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("shards match") == std::string::npos);  // there are none
  const auto step = config["train"].value("stop_at", config["train"]["steps"].get<int>());
  return {digest(w.path(out) + "/" + checkpoint_name(step)), read_metrics(w.path(out))};
}

}  // namespace

/// The run gives the same results on one process and on several, uninterrupted and resumed.
void check_same_by_every_way(const Workplace& w, const json& c) {
  const Run straight = train_task(w, c, "straight");
  REQUIRE(straight.metrics.size() == 8);
  const auto check = [&](const Run& other) {
    CHECK(other.bits == straight.bits);
    for (const char* key :
         {"loss", "grad_norm", "targets", "validation_loss", "validation_loss_error",
          "validation_accuracy", "validation_exact_match"}) {
      INFO(key);
      REQUIRE(straight.metrics.back().contains(key));
      CHECK(other.metrics.back()[key] == straight.metrics.back()[key]);
    }
  };
  check(train_task(w, c, "threads", 1, 3));
  json half = c;
  half["train"]["stop_at"] = 4;
  train_task(w, half, "halves");
  check(train_task(w, c, "halves"));
  if (!have_mpi()) return;
  check(train_task(w, c, "two", 2));
  check(train_task(w, c, "four", 4));
}

TEST_CASE("a task trains bitwise identically in every way") {
  const Workplace w;
  check_same_by_every_way(w, task_run(w, copy()));
}

TEST_CASE("a run that draws positions or distances of a step has the same bits by every way") {
  for (const char* prior : {R"({"name": "alibi", "randomized": true, "eval_positions": "drawn"})",
                            R"({"name": "rope", "randomized": true, "randomized_draw": "step"})"}) {
    INFO(prior);
    const Workplace w;
    json c = task_run(w, copy());
    c["model"]["attention"]["prior"] = json::parse(prior);
    check_same_by_every_way(w, c);
  }
}

/// A small model of the Chomsky benchmark.
json chomsky_run(const Workplace& w, const char* prior) {
  json c = task_run(w, {{"task", "reverse_string"}, {"length", {1, 12}}});
  c["model"]["mlp"] = {{"kind", "relu"}, {"hidden", 128}};
  c["model"]["norm"] = {{"kind", "layernorm"}};
  c["model"]["norm_position"] = "post";
  c["model"]["embed_scale"] = true;
  c["model"]["bias"] = {"mlp", "norm", "head"};
  c["model"]["init"] = "lecun";
  c["model"]["attention"] = {{"prior", json::parse(prior)}, {"causal", false}};
  return c;
}

TEST_CASE("a task of the Chomsky benchmark trains bitwise identically in every way") {
  for (const char* prior : {R"({"name": "alibi", "randomized": true, "eval_positions": "drawn"})",
                            R"({"name": "transformer_xl", "randomized": true})",
                            R"({"name": "learned", "randomized": true, "randomized_draw": "step"})",
                            R"({"name": "dape", "base": "alibi", "hidden": 8})"}) {
    INFO(prior);
    const Workplace w;
    const json c = chomsky_run(w, prior);
    check_same_by_every_way(w, c);
    // The head has the task's classes, and sequences of a step have the same length.
    const json state =
        json::parse(read_text(w.path("straight") + "/checkpoint-00000008/state.json"));
    CHECK(state["config"]["model"]["vocab"] == 3);
    CHECK(state["config"]["model"]["classes"] == 2);
    for (const json& line : read_metrics(w.path("straight"))) {
      CHECK(line["targets"].get<int>() % 16 == 0);
    }
  }
}

TEST_CASE("validation is of the same sequences, whatever is read at a time") {
  const Workplace w;
  json c = chomsky_run(w, R"({"name": "alibi", "randomized": true, "eval_positions": "drawn"})");
  c["optimizer"]["lr"] = 1e-30;
  c["train"] = {{"steps", 1}, {"sequences_per_step", 96}, {"micro_batch", 1}, {"lanes", 1}};
  c["eval"]["tokens"] = 0;
  const json one = train_task(w, c, "one").metrics.back();
  for (const int together : {3, 32, 96}) {
    INFO(together << " sequences");
    c["train"]["micro_batch"] = together;
    const json other = train_task(w, c, std::to_string(together)).metrics.back();
    // The same lengths and positions. Matrix products add in a different order.
    CHECK(other["validation_loss"].get<double>() ==
          Approx(one["validation_loss"].get<double>()).epsilon(1e-5));
    CHECK(other["validation_accuracy"] == one["validation_accuracy"]);
  }
}

TEST_CASE("examples of {input, targets} train a bidirectional model, prompts do not") {
  const Workplace w;
  json c = chomsky_run(w, R"({"name": "alibi"})");
  const json file = {{"task", "file"}, {"path", w.path("examples.jsonl")}};
  c["data"] = {{"train", file}, {"val", file}, {"sequence_length", 8}};
  c["model"]["vocab"] = 10;
  c["eval"] = json::object();
  std::ofstream(w.path("examples.jsonl")) << R"({"input": [1, 2, 9], "targets": [-1, -1, 1]})"
                                          << "\n"
                                          << R"({"input": [3, 9], "targets": [null, 3]})"
                                          << "\n";
  const Run learnt = train_task(w, c, "out");
  CHECK(learnt.metrics.back()["targets"] == 16);
  std::ofstream(w.path("examples.jsonl"), std::ios::app) << R"({"prompt": [1], "target": [2]})"
                                                         << "\n";
  const Outcome o = run(bamtrain_command(write_config(w, "prompt.json", c)), threads(1));
  INFO(o.output);
  CHECK(o.code == 3);
  CHECK(o.output.find("model.attention.causal: expected true with {\"prompt\", \"target\"}") !=
        std::string::npos);
  CHECK(o.output.find("examples.jsonl:3, whose next tokens") != std::string::npos);
}

/// A small model of max_retrieval.
json retrieval_run(const Workplace& w) {
  json c = task_run(w, {{"task", "max_retrieval"}});
  c["model"] = {{"kind", "max_retrieval"},
                {"width", 32},
                {"layers", 1},
                {"heads", 1},
                {"mlp", {{"kind", "gelu_erf"}, {"hidden", 32}}},
                {"init", "torch"},
                {"attention", {{"scale", "adaptive"}, {"normalizer", "entmax"}}}};
  return c;
}

TEST_CASE("max_retrieval trains bitwise identically in every way, a target a sequence") {
  const Workplace w;
  const json c = retrieval_run(w);
  check_same_by_every_way(w, c);
  for (const json& line : read_metrics(w.path("straight"))) CHECK(line["targets"] == 16);
}

TEST_CASE("max_retrieval is learned, and measured at more items") {
  const Workplace w;
  json c = retrieval_run(w);
  c["optimizer"] = {{"name", "adamw"}, {"lr", 3e-3}, {"weight_decay", 1e-3}};
  c["schedule"] = {{"name", "constant"}};
  c["train"] = {{"steps", 500}, {"sequences_per_step", 128}, {"micro_batch", 128}};
  c["eval"] = {
      {"tokens", 17000},
      {"tasks",
       json::array({json{{"task", "max_retrieval"}, {"lengths", {16, 64}}, {"samples", 300}}})}};
  c["log"]["every"] = 500;
  c["checkpoint"]["every"] = 0;
  const json last = train_task(w, c, "out").metrics.back();
  CHECK(last["validation_accuracy"].get<double>() > 0.8);
  CHECK(last["validation_accuracy"] == last["validation_exact_match"]);
  const json results = json::parse(read_text(w.path("out") + "/results.json"));
  CHECK(results["results"]["max_retrieval@16"]["accuracy"].get<double>() > 0.7);
  CHECK(results["results"].contains("max_retrieval@64"));
  // Commands for text or for another task report the kind of the model.
  const std::string checkpoint = w.path("out") + "/checkpoint-00000500";
  const auto refused = [&](const std::vector<std::string>& arguments, const char* with) {
    std::vector<std::string> command = {bamtrain_program()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome o = run(command, threads(1));
    INFO(o.output);
    CHECK(o.code != 0);
    CHECK(o.output.find(with) != std::string::npos);
  };
  refused({"generate", "--checkpoint", checkpoint, "--prompt", "a"}, "model.kind");
  refused({"eval", "--checkpoint", checkpoint, "--lengths", "16", "--data", w.path("val")},
          "model.kind");
  refused({"export", "--checkpoint", checkpoint, "--output", w.path("x")}, "model.kind");
  refused({"eval", "--checkpoint", checkpoint, "--task", "copy", "--lengths", "16"},
          "whose items this model reads");
  for (const char* precision : {"bf16", "tf32"}) {
    refused({"eval", "--checkpoint", checkpoint, "--task", "max_retrieval", "--lengths", "16",
             "--precision", precision},
            "24 bits");
  }
}

TEST_CASE("sources of one task draw sequences of their own") {
  const Workplace w;
  json c = task_run(w, copy());
  c["train"] = {{"steps", 8}, {"stop_at", 1}, {"sequences_per_step", 16}, {"micro_batch", 16}};
  const double once = train_task(w, c, "once").metrics.at(0)["loss"];
  json half = copy();
  half["weight"] = 1;
  c["data"]["train"] = {half, half};
  c["train"]["sequences_per_step"] = 32;
  // With the same sequences twice, the loss would be the same up to rounding.
  const double twice = train_task(w, c, "twice").metrics.at(0)["loss"];
  CHECK(std::abs(once - twice) > 1e-4);
}

TEST_CASE("the loss of a step is the mean over its targets, in whatever micro-batches") {
  const Workplace w;
  json c = task_run(w, copy());
  c["train"]["stop_at"] = 1;
  const json two = train_task(w, c, "two").metrics.at(0);
  c["train"]["micro_batch"] = 16;
  c["train"]["lanes"] = 1;
  const json all = train_task(w, c, "all").metrics.at(0);
  // fp32 sums in a different order, with different padding.
  CHECK(all["loss"].get<double>() == Approx(two["loss"].get<double>()).epsilon(1e-6));
  CHECK(all["grad_norm"].get<double>() == Approx(two["grad_norm"].get<double>()).epsilon(1e-5));
  CHECK(all["targets"] == two["targets"]);
  // 16 sequences of 3 to 30 tokens, each with an end.
  CHECK(all["targets"].get<int>() > 16 * 4);
  CHECK(all["targets"].get<int>() < 16 * 31);
}

TEST_CASE("tasks and shards mix, bitwise identically on several processes") {
  const Workplace w;
  json c = small_run(w);
  json task = copy();
  task["weight"] = 1;
  c["data"]["train"] = json::array({{{"path", w.path("train")}, {"weight", 2}}, task});
  const Run one = train_task(w, c, "one");
  const int targets = one.metrics.back()["targets"];
  CHECK(targets > 10 * 64);
  CHECK(targets < 16 * 64);
  if (have_mpi()) CHECK(train_task(w, c, "two", 2).bits == one.bits);
}

TEST_CASE("a run on a task goes on with that task alone") {
  const Workplace w;
  json c = task_run(w, copy());
  c["train"]["stop_at"] = 4;
  train_task(w, c, "out");
  c["train"].erase("stop_at");
  c["out_dir"] = w.path("out");
  c["data"]["sequence_length"] = 62;  // unchanged
  c["data"]["train"]["length"] = {3, 29};
  const Outcome o = run(bamtrain_command(write_config(w, "other.json", c)), threads(1));
  INFO(o.output);
  CHECK(o.code == 4);
  CHECK(o.output.find("data.train") != std::string::npos);
}

TEST_CASE("a small model learns to name the token two places before") {
  const Workplace w;
  json c = task_run(w, {{"task", "two_back"}, {"length", {6, 12}}});
  c["model"]["attention"] = {{"prior", {{"name", "alibi"}}}};
  c["optimizer"] = {{"name", "adamw"}, {"lr", 1e-2}, {"weight_decay", 0}};
  c["train"] = {{"steps", 400}, {"sequences_per_step", 32}, {"micro_batch", 32}};
  c["schedule"]["warmup_steps"] = 20;
  c["log"]["every"] = 400;
  c["checkpoint"]["every"] = 0;
  const json last = train_task(w, c, "out").metrics.back();
  CHECK(last["validation_accuracy"].get<double>() > 0.95);
  CHECK(last["validation_exact_match"].get<double>() > 0.7);
  CHECK(last["validation_loss"].get<double>() < 0.2);
}

TEST_CASE("every configuration of a task passes a dry run and takes steps") {
  const Workplace w;
  const auto files = shipped_configs("configs/tasks");
  CHECK(files.size() >= 15);
  for (const auto& file : files) {
    if (file.stem() == "passkey-reduced") continue;  // the user brings text and tokenizer
    const std::string out = w.path(file.stem().string());
    std::vector<std::string> settings = {"out_dir=" + out,
                                         "device=cpu",
                                         "model.width=48",
                                         "model.head_dim=0",
                                         "train.steps=3",
                                         "train.precision=fp32",
                                         "schedule.warmup_steps=1",
                                         "train.sequences_per_step=16",
                                         "train.micro_batch=4",
                                         "eval.tokens=4000",
                                         "log.every=1"};
    if (!file.stem().string().starts_with("max_")) {
      settings.insert(settings.end(), {"model.heads=4", "model.layers=2"});
    }
    auto command = bamtrain_command(file.string(), settings);
    INFO(file.string());
    command.push_back("--dry-run");
    const Outcome dry = run(command, threads(1));
    INFO(dry.output);
    CHECK(dry.code == 0);
    // Without measurements, which take hours.
    settings.insert(settings.end(), {"eval.tasks=[]", "checkpoint.best.metric=\"\""});
    const Outcome trained = run(bamtrain_command(file.string(), settings), threads(1));
    INFO(trained.output);
    REQUIRE(trained.code == 0);
    const auto lines = read_metrics(out);
    REQUIRE(lines.size() == 3);
    for (const auto& line : lines) CHECK(std::isfinite(line["loss"].get<double>()));
    CHECK(lines.back().contains("validation_accuracy"));
  }
}

TEST_CASE("a task is evaluated at lengths, the same at every time and in every batch") {
  const Workplace w;
  json c = task_run(w, {{"task", "flip_flop"}, {"length", {4, 30}}, {"ignore", "dense"}});
  train_task(w, c, "out");
  const std::string checkpoint = w.path("out") + "/checkpoint-00000008";
  const auto eval = [&](const std::string& file, const std::vector<std::string>& options) {
    std::vector<std::string> command = {bamtrain_program(), "eval",      "--checkpoint",
                                        checkpoint,         "--task",    "flip_flop",
                                        "--output",         w.path(file)};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome o = run(command, threads(2));
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("exact match") != std::string::npos);
    return json::parse(read_text(w.path(file)));
  };
  const json one = eval("one.json", {"--lengths", "30,100,400", "--samples", "40"});
  CHECK(one["task"] == json{{"task", "flip_flop"}, {"ignore", "dense"}});  // as in training
  REQUIRE(one["scores"].size() == 3);
  for (const json& row : one["scores"]) {
    CHECK(row["sequences"] == 40);
    CHECK(row["targets"] == 80);  // the bit and the end
    CHECK(row["accuracy"].get<double>() >= row["exact_match"].get<double>());
    CHECK(row["loss_error"].get<double>() > 0);
  }
  CHECK(one["scores"][1]["length"] == 100);
  CHECK(eval("two.json", {"--lengths", "400,30,100", "--samples", "40"}) == one);
  CHECK(eval("seed.json", {"--lengths", "30", "--samples", "40", "--seed", "1"})["scores"][0] !=
        one["scores"][0]);
  CHECK(eval("other.json", {"--lengths", "30", "--samples", "40", "--task-set",
                            "ignore=sparse"})["scores"][0] != one["scores"][0]);
  const auto refused = [&](const std::vector<std::string>& options, const char* part) {
    std::vector<std::string> command = {bamtrain_program(), "eval", "--checkpoint", checkpoint};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome o = run(command, threads(1));
    INFO(o.output);
    CHECK(o.code == 2);
    CHECK(o.output.find(part) != std::string::npos);
  };
  refused({"--task", "flipflop", "--lengths", "30"}, "did you mean flip_flop?");
  refused({"--task", "copy", "--lengths", "30"}, "of 37");
  refused({"--task", "even_pairs", "--lengths", "30"}, "for bidirectional attention");
  refused({"--task", "flip_flop", "--lengths", "3"}, "lengths from 4 to ");
  refused({"--task", "flip_flop", "--lengths", "30,5000000"}, "to 1048576");
  refused({"--task", "flip_flop", "--lengths", "30", "--task-set", "task=copy"}, "--task-set");
  refused({"--task", "flip_flop", "--lengths", "30", "--task-set", "ignore=x"}, "--task-set");
  refused({"--task", "flip_flop", "--lengths", "30", "--last-tokens", "3"}, "--last-tokens");
  refused({"--lengths", "30", "--samples", "3"}, "--samples");
  refused({"--lengths", "30"}, "--task");
}

TEST_CASE("a file of examples is trained on bitwise identically in every way, and learnt") {
  const Workplace w;
  // The target is the first id of the prompt, and that id plus one.
  std::ofstream train_file(w.path("train.jsonl")), val_file(w.path("val.jsonl"));
  for (int i = 0; i < 64; ++i) {
    const int first = i % 8, second = i / 8;
    const json line = {{"prompt", {first, second, 9}}, {"target", {first, first + 1}}};
    ((first + second) % 5 == 4 ? val_file : train_file) << line.dump() << "\n";
  }
  train_file.close();
  val_file.close();
  json c = task_run(w, {{"task", "file"}, {"path", w.path("train.jsonl")}});
  c["data"]["val"]["path"] = w.path("val.jsonl");
  c["data"]["sequence_length"] = 8;
  c["model"]["vocab"] = 10;
  c["model"]["attention"] = {{"prior", {{"name", "alibi"}}}};
  c["optimizer"] = {{"name", "adamw"}, {"lr", 1e-2}, {"weight_decay", 0}};
  c["train"]["steps"] = 200;
  c["schedule"]["warmup_steps"] = 20;
  c["eval"] = json::object();
  c["log"]["every"] = 200;
  c["checkpoint"]["every"] = 0;
  const Run straight = train_task(w, c, "straight");
  // Pairs that are not in the training data; guessing would be right for one in 64.
  CHECK(straight.metrics.back()["validation_exact_match"].get<double>() > 0.6);
  CHECK(straight.metrics.back()["targets"] == 32);
  json half = c;
  half["train"]["stop_at"] = 77;  // inside an epoch
  train_task(w, half, "halves");
  // The file may be moved: it is identified by its bytes.
  std::filesystem::rename(w.path("train.jsonl"), w.path("moved.jsonl"));
  c["data"]["train"]["path"] = w.path("moved.jsonl");
  CHECK(train_task(w, c, "halves").bits == straight.bits);
  if (have_mpi()) CHECK(train_task(w, c, "two", 2).bits == straight.bits);
  half = c;
  half["train"]["stop_at"] = 77;
  train_task(w, half, "other");
  std::ofstream(w.path("moved.jsonl"), std::ios::app) << R"({"prompt": [1], "target": [2]})";
  c["out_dir"] = w.path("other");
  const Outcome o = run(bamtrain_command(write_config(w, "other.json", c)), threads(1));
  INFO(o.output);
  CHECK(o.code == 4);
  CHECK(o.output.find("data.train") != std::string::npos);
}

TEST_CASE("an example longer than a sequence is refused by its line") {
  const Workplace w;
  std::ofstream(w.path("train.jsonl")) << R"({"prompt": [1], "target": [2]})"
                                       << "\n\n"
                                       << R"({"prompt": [1, 2, 3, 4, 5, 6, 7, 8], "target": [2]})";
  json c = task_run(w, {{"task", "file"}, {"path", w.path("train.jsonl")}});
  c["data"].erase("val");
  c["eval"] = json::object();
  c["data"]["sequence_length"] = 7;
  c["model"]["vocab"] = 10;
  const Outcome o = run(bamtrain_command(write_config(w, "long.json", c)), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::config));
  CHECK(o.output.find("data.sequence_length: expected at least 8, the inputs of the longest "
                      "example, " +
                      w.path("train.jsonl") + ":3, found 7") != std::string::npos);
}

TEST_CASE("passkeys train bitwise identically in every way, and together with shards") {
  const Workplace w;
  const std::string tokenizer =
      std::string(std::getenv("BAMTRAIN_SOURCE")) + "/tests/data/tokenizers/digits.json";
  const json passkey = {{"task", "passkey"}, {"tokenizer", tokenizer}, {"length", {150, 400}}};
  json c = task_run(w, passkey);
  c["model"]["vocab"] = 560;
  check_same_by_every_way(w, c);
  // Each sequence asks for five digits.
  CHECK(read_metrics(w.path("straight")).back()["targets"] == 16 * 5);
  json mixed = c;
  json shards = small_run(w)["data"]["train"];
  mixed["data"]["train"] = {{{"path", shards}, {"weight", 1}}, passkey};
  mixed["data"]["train"][1]["weight"] = 1;
  mixed["data"]["sequence_length"] = 409;
  train_task(w, mixed, "mixed");
  c["data"]["train"]["length"] = {100, 400};
  c["out_dir"] = w.path("short");
  const Outcome o = run(bamtrain_command(write_config(w, "short.json", c)), threads(1));
  INFO(o.output);
  CHECK(o.code == 3);
  CHECK(o.output.find("data.train.length: expected at least the 147 tokens") != std::string::npos);
}

TEST_CASE("eval --task goes on with a file that has some lengths, and replaces any other result") {
  const Workplace w;
  train_task(w, task_run(w, copy()), "out");
  const std::string output = w.path("result.json");
  std::string checkpoint = w.path("out") + "/checkpoint-00000008";
  const auto eval = [&](const std::string& lengths, const std::string& samples = "40",
                        const std::string& seed = "0", const std::string& to = "") {
    return run(
        {bamtrain_program(), "eval", "--checkpoint", checkpoint, "--task", "copy", "--lengths",
         lengths, "--samples", samples, "--seed", seed, "--output", to.empty() ? output : to},
        threads(1));
  };
  const auto evaluated = [&](const std::string& lengths, const std::string& samples = "40",
                             const std::string& seed = "0") {
    const Outcome o = eval(lengths, samples, seed);
    INFO(o.output);
    REQUIRE(o.code == 0);
    return read_text(output);
  };
  const std::string whole = evaluated("5,9,20");
  const auto write = [&](const nlohmann::ordered_json& file) {
    std::ofstream(output) << file.dump(2) + "\n";
  };
  const auto altered = [&](const std::function<void(nlohmann::ordered_json&)>& change) {
    auto file = nlohmann::ordered_json::parse(whole);
    for (const char* key : {"format", "digest"}) file.erase(key);  // as an earlier program wrote it
    change(file);
    write(file);
  };
  // The middle number is reused, the ones around it are measured.
  altered([](auto& file) {
    file["scores"].erase(2);
    file["scores"].erase(0);
    file["scores"][0]["loss"] = 1234567;
  });
  const json known = json::parse(evaluated("5,9,20"));
  REQUIRE(known["scores"].size() == 3);
  CHECK(known["scores"][1]["loss"] == 1234567);
  altered([](auto& file) { file["scores"].erase(1); });
  CHECK(evaluated("20,9,5") == whole);
  // Lengths that are not requested now are kept.
  altered([](auto& file) { file["scores"].erase(1); });
  CHECK(evaluated("9") == whole);

  const auto marked = [](auto& file) {
    for (auto& row : file["scores"]) row["loss"] = 1234567;
  };
  altered(marked);
  CHECK(evaluated("5,9,20", "41").find("1234567") == std::string::npos);
  altered(marked);
  CHECK(evaluated("5,9,20", "40", "1").find("1234567") == std::string::npos);
  for (const char* key : {"weights", "step", "precision", "attention", "task", "name"}) {
    INFO(key);
    altered([&](auto& file) {
      marked(file);
      file[key] = "other";
    });
    CHECK(evaluated("5,9,20") == whole);
  }
  // The file's content is not trusted.
  for (const json& row :
       {json(3), json(), json::array(), json{{"length", 9}}, json{{"length", "9"}, {"loss", 1}},
        json{{"length", 9},
             {"loss", nullptr},
             {"loss_error", nullptr},
             {"accuracy", 0},
             {"accuracy_error", 0},
             {"exact_match", 0},
             {"exact_match_error", 0}}}) {
    INFO(row);
    altered([&](auto& file) { file["scores"][1] = row; });
    CHECK(evaluated("5,9,20") == whole);
  }
  for (const json& length : {json(-5), json(int64_t{1} << 41), json(UINT64_MAX)}) {
    altered([&](auto& file) { file["scores"][1]["length"] = length; });
    CHECK(evaluated("5,9,20") == whole);
  }
  // A changed number in a file with a digest.
  auto flipped = nlohmann::ordered_json::parse(whole);
  flipped["scores"][1]["loss"] = 1234567;
  write(flipped);
  const Outcome anew = eval("5,9,20");
  INFO(anew.output);
  CHECK(anew.code == 0);
  CHECK(anew.output.find("warning: " + output + ": digest: mismatch: recorded ") !=
        std::string::npos);
  CHECK(read_text(output) == whole);
  for (const char* scores : {"3", "null", "{\"length\": 9}"}) {
    altered([&](auto& file) { file["scores"] = json::parse(scores); });
    CHECK(evaluated("5,9,20") == whole);
  }
  std::ofstream(output) << "";
  CHECK(evaluated("5,9,20") == whole);
  for (const char* text : {"{", "[]", "no JSON"}) {  // not a result of bamtrain
    std::ofstream(output) << text;
    CHECK(eval("5,9,20").code == static_cast<int>(ExitCode::usage));
    CHECK(read_text(output) == text);
  }
  std::filesystem::remove(output);
  std::filesystem::create_directory(w.path("folder"));
  for (const std::string& to : {w.path("folder"), w.path("none/result.json")}) {
    const Outcome o = eval("5,9,20", "40", "0", to);
    INFO(o.output);
    CHECK(o.code == 6);
    CHECK(o.output.find(to) != std::string::npos);
    CHECK(o.output.find("exact match") == std::string::npos);
  }
  const Outcome many = eval("5", "999999999999");
  INFO(many.output);
  CHECK(many.code == 9);
  CHECK(many.output.find("(--samples, --lengths)") != std::string::npos);
  checkpoint = w.path("out") + "/none";  // this error comes first: no work has begun
  CHECK(eval("5", "40", "0", w.path("folder")).code == 6);
}

TEST_CASE("eval --task has the run's options, and asks where the run has several") {
  const Workplace w;
  json c = task_run(w, {{"task", "mqmtar"}, {"length", {8, 16}}});
  c["data"]["train"] = {{{"task", "mqmtar"}, {"length", {8, 16}}, {"queries", 4}, {"weight", 1}},
                        {{"task", "mqmtar"}, {"length", {8, 16}}, {"queries", 1}, {"weight", 1}}};
  train_task(w, c, "out");
  const auto eval = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {
        bamtrain_program(), "eval",   "--checkpoint", w.path("out") + "/checkpoint-00000008",
        "--task",           "mqmtar", "--lengths",    "16",
        "--samples",        "10"};
    command.insert(command.end(), options.begin(), options.end());
    return run(command, threads(1));
  };
  const Outcome several = eval({});
  INFO(several.output);
  CHECK(several.code == 2);
  CHECK(several.output.find("data.train has mqmtar with queries 4 and 1; ") != std::string::npos);
  CHECK(several.output.find("give --task-set queries=VALUE") != std::string::npos);
  const Outcome two = eval({"--task-set", "queries=2", "--output", w.path("two.json")});
  INFO(two.output);
  CHECK(two.code == 0);
  const json result = json::parse(read_text(w.path("two.json")));
  CHECK(result["task"]["queries"] == 2);
  CHECK(eval({"--task-set", "queries=9"}).code == 2);
  // A file that only begins like a result is not replaced.
  const std::string notes = R"({"task": "my own notes"})";
  std::ofstream(w.path("notes.json")) << notes;
  CHECK(eval({"--task-set", "queries=2", "--output", w.path("notes.json")}).code == 2);
  CHECK(read_text(w.path("notes.json")) == notes);
}

TEST_CASE("a task is evaluated at distances that are drawn by the seed, or that count") {
  const Workplace w;
  json c = task_run(w, copy());
  c["model"]["attention"]["prior"] = {{"name", "alibi"},
                                      {"randomized", true},
                                      {"randomized_length", 210},
                                      {"eval_positions", "drawn"}};
  train_task(w, c, "out");
  const auto eval = [&](const std::string& file, std::vector<std::string> options) {
    std::vector<std::string> command = {bamtrain_program(), "eval",
                                        "--checkpoint",     w.path("out") + "/checkpoint-00000008",
                                        "--output",         w.path(file)};
    command.insert(command.end(), options.begin(), options.end());
    return run(command, threads(2));
  };
  const auto scores = [&](const std::vector<std::string>& more) {
    std::vector<std::string> options = {"--task", "copy", "--lengths", "20,100", "--samples", "70"};
    options.insert(options.end(), more.begin(), more.end());
    const Outcome o = eval("scores.json", options);
    INFO(o.output);
    REQUIRE(o.code == 0);
    return json::parse(read_text(w.path("scores.json")))["scores"];
  };
  const json drawn = scores({});
  CHECK(scores({}) == drawn);
  CHECK(scores({"--seed", "1"}) != drawn);
  CHECK(scores({"--set", "model.attention.prior.eval_positions=counted"}) != drawn);
  const auto refused = [&](const std::vector<std::string>& options, const char* part) {
    const Outcome o = eval("none.json", options);
    INFO(o.output);
    CHECK(o.code != 0);
    CHECK(o.output.find(part) != std::string::npos);
  };
  refused({"--task", "copy", "--lengths", "105"}, "at most 210 distances");
  refused({"--lengths", "30", "--data", w.path("val")}, "eval_positions=counted");
}

TEST_CASE("BLEU of answers of one word is the share that a model writes right") {
  const Workplace w;
  json c = task_run(w, {{"task", "flip_flop"}, {"length", {4, 8}}, {"ignore", "dense"}});
  c["model"]["attention"] = {{"prior", {{"name", "alibi"}}}};
  c["optimizer"] = {{"name", "adamw"}, {"lr", 1e-2}, {"weight_decay", 0}};
  c["train"] = {{"steps", 150}, {"sequences_per_step", 32}, {"micro_batch", 32}};
  c["schedule"]["warmup_steps"] = 20;
  c["log"]["every"] = 150;
  c["checkpoint"]["every"] = 0;
  c["eval"]["tasks"] = json::array({{{"task", "flip_flop"},
                                     {"ignore", "dense"},
                                     {"lengths", {4, 8}},
                                     {"samples", 40},
                                     {"bleu", true}}});
  train_task(w, c, "out");
  const json results = json::parse(read_text(w.path("out") + "/results.json"))["results"];
  for (const char* name : {"flip_flop@4", "flip_flop@8"}) {
    const json& row = results[name];
    INFO(row.dump());
    // Few texts are too long or end early, and neither metric counts them as right.
    CHECK(row["bleu"].get<double>() == Approx(row["exact_match"].get<double>()).margin(0.03));
    CHECK(row["exact_match"].get<double>() > 0.2);
  }
}

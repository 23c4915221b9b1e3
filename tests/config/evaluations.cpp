// eval.tasks, and the metric that checkpoint.best names.

#include "config/evaluations.h"

#include <nlohmann/json.hpp>

#include "fixture.h"
#include "train/metric_name.h"

using namespace bamtrain;

namespace {

using nlohmann::json;

/// A run on shards that is evaluated on tasks.
json config_with(const json& tasks) {
  json c = json::parse(kValid);
  c["eval"]["tasks"] = tasks;
  return c;
}

/// The message for an entry that consists of these members.
std::string entry_refusal(const std::string& entry) {
  return message(config_with(json::array({json::parse(entry)})).dump());
}

json entry_of(const std::string& members) {
  return json::parse(R"({"task": "copy", "lengths": [8])" + members + "}");
}

/// flip@6 and flip@9 are measured during training, copy@8 is not.
json measured() {
  json c =
      config_with({{{"task", "flip_flop"}, {"lengths", {6, 9}}, {"every", 5}, {"name", "flip"}},
                   {{"task", "copy"}, {"lengths", {8}}}});
  c["data"]["val"] = "tokens/val";
  return c;
}

}  // namespace

TEST_CASE("an entry says what is measured, lengths in order, and leaves the rest to defaults") {
  const RunConfig c = read_config(config_with(json::parse(R"([
      {"task": "flip_flop", "ignore": "dense", "lengths": [64, 9], "samples": 7, "seed": 3,
       "every": 5, "name": "n"},
      {"task": "copy"}])")));
  REQUIRE(c.eval.tasks.size() == 2);
  const TaskEvaluation &full = c.eval.tasks[0], &bare = c.eval.tasks[1];
  CHECK(full.trained().name == "n");
  CHECK(full.trained().task.info->name == "flip_flop");
  CHECK(full.trained().task.options.text("ignore") == "dense");
  CHECK(full.trained().lengths == std::vector<int64_t>{9, 64});
  CHECK(full.trained().samples == 7);
  CHECK(full.trained().seed == 3);
  CHECK(full.every == 5);
  CHECK(bare.trained().name == "copy");
  CHECK(bare.trained().lengths == std::vector<int64_t>{64});  // the longest default length of copy
  CHECK(bare.trained().samples == 1000);
  CHECK(bare.trained().seed == 0);
  CHECK(bare.every == 0);
  CHECK(read_config(json::parse(kValid)).eval.tasks.empty());
}

TEST_CASE("a run that is measured on tasks is resolved, and read again, the same") {
  json given = config_with(json::parse(
      R"([{"task": "flip_flop", "lengths": [9, 6], "every": 5}, {"task": "copy", "seed": 4}])"));
  given["checkpoint"]["best"] = {{"metric", "flip_flop@6/exact_match"}, {"mode", "max"}};
  const json resolved = resolved_json(read_config(given));
  CHECK(resolved["eval"]["tasks"] == json::parse(R"([
      {"task": "flip_flop", "ignore": "sparse", "lengths": [6, 9], "samples": 1000, "seed": 0,
       "every": 5, "bleu": false, "name": "flip_flop"},
      {"task": "copy", "lengths": [64], "samples": 1000, "seed": 4, "every": 0,
       "bleu": false, "name": "copy"}])"));
  CHECK(resolved["checkpoint"]["best"] ==
        json{{"metric", "flip_flop@6/exact_match"}, {"mode", "max"}});
  CHECK(json(resolved_json(read_config(resolved))) == resolved);
  CHECK(json(resolved_json(valid_with({})))["checkpoint"]["best"] ==
        json{{"metric", ""}, {"mode", "min"}});
}

TEST_CASE("--set gives the list of tasks, and replaces it") {
  const RunConfig c =
      valid_with({R"(eval.tasks=[{"task": "reverse"}])",
                  R"(eval.tasks=[{"task": "copy", "lengths": [5], "every": 2}])",
                  "checkpoint.best.metric=copy@5/accuracy", "checkpoint.best.mode=max"});
  REQUIRE(c.eval.tasks.size() == 1);
  CHECK(c.eval.tasks[0].trained().lengths == std::vector<int64_t>{5});
  CHECK(c.checkpoint.best_metric == "copy@5/accuracy");
  CHECK(c.checkpoint.best_is_highest);
  CHECK(valid_with({R"(eval.tasks=[{"task": "copy"}])", "eval.tasks=[]"}).eval.tasks.empty());
  check_mentions(message(kValid, {"eval.tasks=copy"}),
                 {"--set eval.tasks=copy:", "an array of tasks"});
}

TEST_CASE("what is no evaluation of a task is refused, by the number of its entry") {
  for (const char* value : {"3", "null", "\"copy\"", R"({"task": "copy"})"}) {
    INFO(value);
    check_mentions(message(config_with(json::parse(value)).dump()),
                   {"run.json: eval.tasks:", "an array of tasks", "write [{\"task\": NAME"});
  }
  for (const char* value : {"3", "null", "\"copy\"", "[]", "{}", R"({"lengths": [5]})"}) {
    INFO(value);
    check_mentions(
        message(config_with(json::array({{{"task", "copy"}}, json::parse(value)})).dump()),
        {"run.json: eval.tasks[1]:", "a task, {\"task\": NAME", "name the task"});
  }
  check_mentions(entry_refusal(R"({"task": "copi"})"),
                 {"eval.tasks[0].task", "did you mean copy?"});
  check_mentions(entry_refusal(R"({"task": 3})"), {"eval.tasks[0].task", "string"});
  check_mentions(entry_refusal(R"({"task": "copy", "length": [5, 9]})"),
                 {"eval.tasks[0].length:", "length is a training range", "write \"lengths\""});
  check_mentions(entry_refusal(R"({"task": "copy", "sample": 5})"),
                 {"eval.tasks[0].sample:", "unknown key", "did you mean", "samples"});
  check_mentions(entry_refusal(R"({"task": "copy", "ignore": "dense"})"),
                 {"eval.tasks[0].ignore:", "unknown key", "lengths", "every"});
  check_mentions(entry_refusal(R"({"task": "copy", "weight": 1})"), {"eval.tasks[0].weight:"});
  check_mentions(entry_refusal(R"({"task": "flip_flop", "ignore": "dens"})"),
                 {"eval.tasks[0].ignore", "did you mean dense?"});
}

TEST_CASE("members of an evaluation have types and limits") {
  check_mentions(entry_refusal(R"({"task": "copy", "lengths": []})"),
                 {"eval.tasks[0].lengths: empty list", "leave lengths out"});
  check_mentions(entry_refusal(R"({"task": "copy", "lengths": [5, 9, 5]})"),
                 {"eval.tasks[0].lengths"});
  check_mentions(entry_refusal(R"({"task": "copy", "lengths": [5, 0]})"),
                 {"eval.tasks[0].lengths"});
  check_mentions(entry_refusal(R"({"task": "copy", "lengths": 5})"), {"eval.tasks[0].lengths"});
  // Lengths outside the task's range, at either end.
  check_mentions(entry_refusal(R"({"task": "mqmtar", "lengths": [64, 7]})"),
                 {"eval.tasks[0].lengths", "from 8 to 75000"});
  check_mentions(entry_refusal(R"({"task": "mqmtar", "lengths": [64, 75001]})"),
                 {"eval.tasks[0].lengths", "from 8 to 75000"});
  for (const char* member :
       {R"("samples": 0)", R"("samples": 1.5)", R"("samples": 2147483649)", R"("seed": -1)",
        R"("seed": "x")", R"("every": -1)", R"("every": null)", R"("name": "")", R"("name": 3)"}) {
    INFO(member);
    const std::string key = json::parse("{" + std::string(member) + "}").items().begin().key();
    check_mentions(entry_refusal(R"({"task": "copy", )" + std::string(member) + "}"),
                   {("eval.tasks[0]." + key).c_str()});
  }
  CHECK(entry_refusal(R"({"task": "copy", "samples": 2147483648, "seed": 9223372036854775807})")
            .empty());
}

TEST_CASE("BLEU is of tasks whose answers are continued, and files are no tasks to measure") {
  CHECK(entry_refusal(R"({"task": "sort", "bleu": true})").empty());
  check_mentions(entry_refusal(R"({"task": "two_back", "bleu": true})"),
                 {"eval.tasks[0].bleu", "two_back"});
  check_mentions(entry_refusal(R"({"task": "file", "path": "x"})"),
                 {"eval.tasks[0].task", "data.val"});
}

TEST_CASE("an entry of texts has its task's options, and results of its parts") {
  const RunConfig c = read_config(config_with(json::parse(R"([
      {"task": "passkey", "lengths": [512, 0], "digits": 6, "prefix_digits": 1, "every": 3},
      {"task": "niah", "tasks": ["vt", "niah_single_1"], "lengths": [1024], "seed": 2,
       "name": "ruler"},
      {"task": "niah", "tasks": ["cwe"], "lengths": [2048], "samples": 7},
      {"task": "choice", "file": "x.jsonl", "name": "hellaswag"}])")));
  REQUIRE(c.eval.tasks.size() == 4);
  const auto& passkey = std::get<TextTaskRequest>(c.eval.tasks[0].request);
  CHECK(passkey.lengths == std::vector<int64_t>{0, 512});
  CHECK(passkey.options.number("digits") == 6);
  CHECK(passkey.options.number("depths") == 20);
  CHECK_FALSE(passkey.samples);
  CHECK(c.eval.tasks[0].every == 3);
  CHECK(std::get<TextTaskRequest>(c.eval.tasks[2].request).samples == 7);
  std::vector<std::string> results;
  for (const TaskEvaluation& e : c.eval.tasks) {
    for (const std::string& name : results_of(e)) results.push_back(name);
  }
  CHECK(results == std::vector<std::string>{"passkey@0", "passkey@512", "ruler.vt@1024",
                                            "ruler.niah_single_1@1024", "cwe@2048", "hellaswag"});
  const json resolved = resolved_json(c);
  CHECK(json(resolved_json(read_config(resolved))) == resolved);
}

TEST_CASE("passkeys are measured as the run is trained on them, where an entry leaves it open") {
  json c = config_with({{{"task", "passkey"}, {"lengths", {240}}},
                        {{"task", "passkey"}, {"lengths", {240}}, {"digits", 2}, {"name", "two"}}});
  c["data"] = {
      {"train", {{"task", "passkey"}, {"tokenizer", "t.model"}, {"digits", 3}, {"bos", true}}}};
  c["train"].erase("tokens_per_step");
  c["train"]["sequences_per_step"] = 8;
  const auto digits = [&](size_t entry) {
    const RunConfig config = read_config(c);
    const Options& o = std::get<TextTaskRequest>(config.eval.tasks[entry].request).options;
    CHECK(o.flag("bos"));
    CHECK(o.text("tokenizer").empty());
    return o.number("digits");
  };
  CHECK(digits(0) == 3);
  CHECK(digits(1) == 2);
  c["eval"]["tasks"][0]["prefix_digits"] = 3;
  CHECK(message(c.dump()).find("eval.tasks[0].prefix_digits") != std::string::npos);
}

TEST_CASE("an entry of texts names what it cannot be asked") {
  const auto mentions = [](const char* entry, const char* key) {
    INFO(entry);
    check_mentions(entry_refusal(entry), {key});
  };
  mentions(R"({"task": "passkey", "lengths": []})", "eval.tasks[0].lengths");
  mentions(R"({"task": "passkey", "lengths": [-1]})", "eval.tasks[0].lengths");
  mentions(R"({"task": "passkey", "depths": 1})", "eval.tasks[0].depths");
  mentions(R"({"task": "passkey", "bleu": true})", "eval.tasks[0].bleu");
  mentions(R"({"task": "passkey", "tasks": ["vt"]})", "eval.tasks[0].tasks");
  mentions(R"({"task": "niah", "tasks": ["vt"]})", "eval.tasks[0].lengths");
  mentions(R"({"task": "niah", "tasks": ["vt"], "lengths": [9], "depths": 1})",
           "eval.tasks[0].depths");
  mentions(R"({"task": "niah", "file": "x", "lengths": [9]})", "eval.tasks[0].lengths");
  mentions(R"({"task": "niah", "file": "x", "tasks": ["vt"]})", "eval.tasks[0].tasks");
  mentions(R"({"task": "cloze"})", "eval.tasks[0].file");
  mentions(R"({"task": "cloze", "file": "x", "seed": 3})", "eval.tasks[0].seed");
  mentions(R"({"task": "choice", "file": "x", "shots_file": "y"})", "eval.tasks[0].shots");
  mentions(R"({"task": "choice", "file": "x", "format": "hellswag"})", "eval.tasks[0].format");
  mentions(R"({"task": "requests", "file": "x", "name": "a b"})", "eval.tasks[0].name");
}

TEST_CASE("results of two entries have different names") {
  const json copy = entry_of("");
  check_mentions(message(config_with(json::array({copy, copy})).dump()),
                 {"eval.tasks[1].name:", "a name other than that of eval.tasks[0]", "\"copy\"",
                  "rename one of them"});
  // This holds for different tasks too, if they share a length.
  json other = {{"task", "reverse"}, {"lengths", {7, 8}}, {"name", "copy"}};
  check_mentions(message(config_with(json::array({copy, other})).dump()), {"eval.tasks[1].name:"});
  // Lengths with the same name are drawn on one map, so they need the same depths.
  const json some = {{"task", "passkey"}, {"lengths", {128}}, {"depths", 2}};
  json more = {{"task", "passkey"}, {"lengths", {256}}, {"depths", 3}};
  check_mentions(message(config_with(json::array({some, more})).dump()),
                 {"eval.tasks[1].depths: expected 2", "as eval.tasks[0] has under the same name"});
  more["name"] = "deeper";
  CHECK(message(config_with(json::array({some, more})).dump()).empty());
  other["lengths"] = {7, 9};
  CHECK(message(config_with(json::array({copy, other})).dump()).empty());
  other["lengths"] = {8};
  other["name"] = "reverse";
  CHECK(message(config_with(json::array({copy, other})).dump()).empty());
  for (const char* name : {"windows", "last"}) {
    check_mentions(
        message(config_with(json::array({entry_of(R"(, "name": ")" + std::string(name) + "\"")}))
                    .dump()),
        {"eval.tasks[0].name:", "perplexity results at eval.lengths", name});
  }
}

TEST_CASE("what the model could not be measured on is refused") {
  json c = config_with(json::array({entry_of("")}));
  c["model"]["vocab"] = 36;
  check_mentions(message(c.dump()), {"model.vocab", "at least the 37 ids of \"copy\"", "36"});
  check_mentions(entry_refusal(R"({"task": "even_pairs"})"),
                 {"eval.tasks[0]", "which is bidirectional"});
  // Length 8: 8 tokens, their copy and two special tokens, the last of which is not an input.
  const auto with_attention = [](const char* attention) {
    json c = config_with(json::array({entry_of("")}));
    c["model"]["attention"] = json::parse(attention);
    return c;
  };
  c = with_attention(R"({"prior": {"name": "learned", "positions": 17}})");
  const int64_t most = read_config(config_with(json::array({entry_of("")})))
                           .eval.tasks[0]
                           .trained()
                           .task.info->most_inputs(8);
  CHECK(most == 18);
  check_mentions(message(c.dump()),
                 {"eval.tasks[0].lengths:", "the 17 positions of the \"learned\" prior",
                  "18 inputs at length 8", "raise model.attention.prior.positions"});
  c["model"]["attention"]["prior"]["positions"] = 18;
  CHECK(message(c.dump()).empty());
  c = with_attention(
      R"({"prior": {"name": "nope"}, "scale": {"name": "by_length", "lengths": 17}})");
  check_mentions(message(c.dump()), {"eval.tasks[0].lengths:", "at most 17 visible keys per row",
                                     "\"by_length\" scale"});
  c["model"]["attention"]["scale"]["lengths"] = 18;
  CHECK(message(c.dump()).empty());
  c["model"]["attention"]["scale"]["lengths"] = 17;
  c["model"]["attention"]["window"] = 17;
  CHECK(message(c.dump()).empty());
}

TEST_CASE("the best checkpoint is chosen by what is measured while the run trains") {
  const std::vector<std::string> known = {"validation/loss",    "flip@6/loss", "flip@6/accuracy",
                                          "flip@6/exact_match", "flip@9/loss", "flip@9/accuracy",
                                          "flip@9/exact_match"};
  CHECK(metrics_while_training(read_config(measured())) == known);
  for (const std::string& metric : known) {
    json c = measured();
    c["checkpoint"]["best"] = {{"metric", metric}, {"mode", "max"}};
    CHECK(message(c.dump()).empty());
    c["checkpoint"]["best"].erase("mode");  // the default for a loss is the minimum
    CHECK(message(c.dump()).empty() == metric.ends_with("/loss"));
  }
  json least = measured();
  least["checkpoint"]["best"]["metric"] = "flip@9/accuracy";
  check_mentions(message(least.dump()), {"checkpoint.best.mode", "max with flip@9/accuracy"});
  const auto refused = [](const json& base, const std::string& metric) {
    json c = base;
    c["checkpoint"]["best"] = {{"metric", metric}, {"mode", "max"}};
    return message(c.dump());
  };
  check_mentions(refused(measured(), "flip@9/exact_matches"),
                 {"checkpoint.best.metric:", "one of validation/loss, flip@6/loss",
                  "did you mean flip@9/exact_match?"});
  check_mentions(refused(measured(), "copy@8/loss"),
                 {"checkpoint.best.metric:", "\"copy@8/loss\""});
  check_mentions(refused(measured(), "validation/accuracy"), {"checkpoint.best.metric:"});
  check_mentions(refused(measured(), "loss"), {"checkpoint.best.metric:"});
  check_mentions(
      refused(json::parse(kValid), "validation/loss"),
      {"checkpoint.best.metric:", "a metric measured while training: data.val, or eval.tasks"});
  json task = measured();
  task["data"]["val"] = {{"task", "copy"}, {"length", {2, 3}}};
  CHECK(refused(task, "validation/accuracy").empty());
  check_mentions(refused(measured(), ""), {});
  json c = measured();
  c["checkpoint"]["best"] = {{"metric", "flip@6/loss"}, {"mode", "mix"}};
  check_mentions(message(c.dump()), {"checkpoint.best.mode", "did you mean min?"});
}

TEST_CASE("a run has results of validation, of its tasks and of perplexity against length") {
  json c = measured();
  c["eval"]["lengths"] = {16, 32};
  CHECK(results_of(read_config(c)) == std::vector<std::string>{"validation", "flip@6", "flip@9",
                                                               "copy@8", "windows@16", "windows@32",
                                                               "last@16", "last@32"});
  CHECK(results_of(read_config(json::parse(kValid))).empty());
}

TEST_CASE("an evaluation of a checkpoint asks nothing of the run's own evaluations") {
  json c = measured();
  c["checkpoint"]["best"]["metric"] = "flip@9/loss";
  const RunConfig evaluated = read_run_config_text(
      c.dump(), "run.json",
      {"eval.tasks=[]", "model.attention.prior={\"name\":\"learned\",\"positions\":17}"},
      ConfigUse::evaluation);
  CHECK(evaluated.eval.tasks.empty());
}

// `bamtrain eval --task choice, cloze, requests` as a user calls it.

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"
#include "data/tokenizer.h"
#include "train/changed_checkpoint.h"
#include "train/trained_text.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

struct PromptedText : TrainedText {
  using TrainedText::TrainedText;

  std::string path(const std::string& name) const { return text.w.path(name); }
  std::string write(const std::string& name, const std::vector<json>& records) const {
    std::string lines;
    for (const json& record : records) lines += record.dump() + "\n";
    write_bytes(path(name), lines);
    return path(name);
  }
  Outcome eval(const std::string& task, const std::string& file, const Words& more = {}) const {
    Words all = {bamtrain_program(), "eval", "--checkpoint", checkpoint,
                 "--task",           task,   "--task-set",   "file=" + file};
    all.insert(all.end(), more.begin(), more.end());
    return run(all, threads(1));
  }
  std::string printed(const std::string& task, const std::string& file,
                      const Words& more = {}) const {
    const Outcome o = eval(task, file, more);
    INFO(o.output);
    REQUIRE(o.code == 0);
    return o.output;
  }
  json result(const std::string& task, const std::string& file, Words more = {}) const {
    more.insert(more.end(), {"--output", path("result.json")});
    printed(task, file, more);
    return json::parse(read_text(path("result.json")));
  }
  void check_refused(const Outcome& o, ExitCode code, const std::string& message) const {
    INFO(o.output);
    CHECK(o.code == static_cast<int>(code));
    CHECK(contains(o.output, message));
  }
};

std::vector<json> parsed_lines(const std::string& text) {
  std::vector<json> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

json query(const std::string& text, const Words& choices, int gold) {
  return {{"query", text}, {"choices", choices}, {"gold", gold}};
}

const std::vector<json> kQuestions = {
    query("The old sailor", {"crossed two wooden houses.", "x", "a quiet river, twice"}, 0),
    query("Every winter described", {"nothing at all.", "qqqq"}, 0),
    query("My neighbour ", {"painted", "followed the long road (again)."}, 1),
    query("The committee", {"measured", "crossed", "\u00e9\u00e9\u00e9 maps", "3"}, 2)};

/// The index of the first maximum.
size_t first_best(const std::vector<double>& scores) {
  size_t best = 0;
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

}  // namespace

TEST_CASE("a result takes the place of a result alone") {
  const PromptedText t;
  const std::string asked = t.write("requests", {{{"context", "The old"}, {"continuation", " a"}}});
  const std::string before = read_text(asked), model = t.checkpoint + "/model.safetensors";
  const std::string weights = read_text(model);
  const auto refused = [&](const std::string& output) {
    t.check_refused(t.eval("requests", asked, {"--output", output}), ExitCode::usage,
                    output == asked ? "is the file that the task reads"
                                    : "exists and is not a result of bamtrain eval");
  };
  refused(asked);
  refused(model);
  refused(t.checkpoint + "/state.json");  // its sections include the one that results begin with
  const std::string config = t.write("config", {{{"checkpoint", {{"every", 2}}}}});
  refused(config);
  t.check_refused(run({bamtrain_program(), "eval", "--checkpoint", t.checkpoint, "--lengths", "16",
                       "--output", config},
                      threads(1)),
                  ExitCode::usage, "exists and is not a result of bamtrain eval");
  CHECK(read_text(asked) == before);
  CHECK(read_text(model) == weights);
  t.printed("requests", asked, {"--output", t.path("answers.jsonl")});
  t.printed("requests", asked, {"--output", t.path("answers.jsonl")});
  const std::string questions = t.write("questions", kQuestions);
  t.result("choice", questions);
  t.result("choice", questions, {"--samples", "2"});
  t.check_refused(t.eval("choice", questions, {"--task-set", "file=x"}), ExitCode::usage,
                  "file is given twice");
}

TEST_CASE("one choice is no question") {
  const PromptedText t;
  const std::string file =
      t.write("questions", {query("The old", {"sailor", "x"}, 0), query("The old", {"sailor"}, 0)});
  t.check_refused(t.eval("choice", file), ExitCode::data, "questions:2: expected two choices");
}

TEST_CASE("texts that would not fit into memory are refused before the weights are read") {
  const PromptedText t;
  std::string context;
  for (int n = 0; n < 120'000; ++n) context += "The old ";
  const std::string asked = t.write("requests", {{{"context", context}, {"continuation", " a"}}});
  const Outcome o =
      run({"sh", "-c", "ulimit -v 115000; exec \"$@\"", "sh", bamtrain_program(), "eval",
           "--checkpoint", t.checkpoint, "--task", "requests", "--task-set", "file=" + asked},
          threads(1));
  t.check_refused(o, ExitCode::device,
                  "memory of the model and examples (--task-set file): expected at most");
  CHECK(contains(o.output, "leave the longest example out"));
}

TEST_CASE("choices are scored by the log-probabilities that requests have") {
  const PromptedText t;
  std::vector<json> requests;
  for (const json& q : kQuestions) {
    for (const std::string choice : q["choices"]) {
      requests.push_back({{"context", q["query"]}, {"continuation", " " + choice}});
    }
  }
  const std::string asked = t.write("requests", requests);
  const std::string printed = t.printed("requests", asked);
  const std::vector<json> answers = parsed_lines(printed);
  REQUIRE(answers.size() == requests.size());
  double right = 0, by_character = 0, by_token = 0;
  size_t at = 0;
  for (const json& q : kQuestions) {
    std::vector<double> sums, characters, tokens;
    for (const std::string choice : q["choices"]) {
      const double sum = answers[at]["logprob"], ids = answers[at++]["tokens"];
      const bool accents = choice.size() > 3 && choice[0] == '\xc3';
      const auto size = static_cast<double>(choice.size()) - (accents ? 3 : 0);
      CHECK(sum < 0);
      CHECK(ids >= 1);
      sums.push_back(sum);
      characters.push_back(sum / size);
      tokens.push_back(sum / ids);
    }
    right += first_best(sums) == q["gold"];
    by_character += first_best(characters) == q["gold"];
    by_token += first_best(tokens) == q["gold"];
  }
  const std::string file = t.write("questions", kQuestions);
  const json result = t.result("choice", file);
  CHECK(result["scores"]["examples"] == 4);
  CHECK(result["scores"]["acc"] == right / 4);
  CHECK(result["scores"]["acc_norm"] == by_character / 4);
  CHECK(result["scores"]["acc_token"] == by_token / 4);
  const double a = right / 4;
  CHECK(result["scores"]["acc_error"].get<double>() == Approx(std::sqrt(a * (1 - a) / 3)));
  CHECK(result["checkpoint"] == t.checkpoint);
  CHECK(result["step"] == 2);
  CHECK(result["weights"] == sha256_file(t.checkpoint + "/model.safetensors"));
  CHECK(result["tokenizer"] == sha256_file(t.text.tokenizer));
  CHECK(result["precision"] == "f32");
  CHECK(result["training_length"] == 64);
  CHECK(result["task"] == json({{"task", "choice"},
                                {"file", file},
                                {"bos", true},
                                {"sha256", sha256_file(file)},
                                {"format", "query"},
                                {"shots", 0}}));
  CHECK_FALSE(result.contains("groups"));
  CHECK(t.result("choice", file, {"--samples", "1"})["scores"]["acc_error"].is_null());

  // The answers are the same in a file. In another batch they may round differently, as matrix
  // products have other shapes.
  t.printed("requests", asked, {"--output", t.path("answers")});
  CHECK(read_text(t.path("answers")) == printed);
  const json alone = parsed_lines(t.printed("requests", t.write("one", {requests[4]})))[0];
  CHECK(alone["logprob"].get<double>() ==
        Approx(answers[4]["logprob"].get<double>()).epsilon(1e-6));
  CHECK(alone["tokens"] == answers[4]["tokens"]);
  // The documents begin with BOS, so the model reads it unless told otherwise.
  CHECK(parsed_lines(t.printed("requests", asked, {"--task-set", "bos=false"}))[0] != answers[0]);
}

TEST_CASE("shots stand before the question, and are of another file") {
  const PromptedText t;
  const std::string file = t.write("a", {kQuestions[1]}), shots = t.write("b", kQuestions);
  const std::string context =
      "The old sailor crossed two wooden houses.\n\nEvery winter described nothing at all.\n\n"
      "Every winter described";
  const json shown =
      t.result("choice", file, {"--task-set", "shots=2", "--task-set", "shots_file=" + shots});
  CHECK(shown["task"]["shots"] == 2);
  CHECK(shown["task"]["shots_file"] == shots);
  const std::string whole = t.write("c", {query(context, {"nothing at all.", "qqqq"}, 0)});
  CHECK(shown["scores"] == t.result("choice", whole)["scores"]);
  t.check_refused(
      t.eval("choice", file, {"--task-set", "shots=2"}), ExitCode::usage,
      "--task-set shots: expected a number with shots_file, or neither, found shots alone");
  t.check_refused(
      t.eval("choice", file, {"--task-set", "shots=1", "--task-set", "shots_file=" + file}),
      ExitCode::usage, "expected a file other than that of the examples");
  const std::string copy = t.write("copy", {kQuestions[1]});
  t.check_refused(
      t.eval("choice", file, {"--task-set", "shots=1", "--task-set", "shots_file=" + copy}),
      ExitCode::usage, "expected a file other than that of the examples, found a copy of them");
  t.check_refused(
      t.eval("choice", file, {"--task-set", "shots=5", "--task-set", "shots_file=" + shots}),
      ExitCode::data, shots + ": expected 5 examples, found 4");
}

TEST_CASE("a head of zeros knows nothing: closed forms of every task") {
  PromptedText t;
  t.checkpoint = with_constant(t.checkpoint, t.path("changed"), "lm_head.weight", 0);
  const double nats = std::log(512.0);  // per token
  const std::vector<json> answers = parsed_lines(t.printed(
      "requests",
      t.write("requests", {{{"context", ""}, {"continuation", "Every winter"}},
                           {{"context", "Her brother"}, {"continuation", " painted nothing"}}})));
  const Tokenizer tokenizer = Tokenizer::open(t.text.tokenizer);
  CHECK(answers[0]["tokens"] == tokenizer.encode("Every winter").size());
  CHECK(answers[1]["tokens"] == tokenizer.encode("Her brother painted nothing").size() -
                                    tokenizer.encode("Her brother").size());
  for (const json& a : answers) {
    CHECK(a["logprob"].get<double>() == Approx(-nats * a["tokens"].get<double>()).epsilon(1e-6));
    CHECK(a["is_greedy"] == false);  // with equal logits, id 0 wins, which is <unk>
  }

  // Letters are one token each. The first is always chosen, and is right if it is the answer.
  const auto mmlu = [](const char* subject, int answer) {
    return json{{"question", "Which?"},
                {"subject", subject},
                {"choices", {"a", "b", "c", "d"}},
                {"answer", answer}};
  };
  const json subjects =
      t.result("choice", t.write("mmlu", {mmlu("law", 0), mmlu("us_history", 0), mmlu("law", 3),
                                          mmlu("law", 0), mmlu("law", 1)}));
  CHECK(subjects["task"]["format"] == "mmlu");
  CHECK(subjects["scores"]["acc"] == 0.6);
  CHECK_FALSE(subjects["scores"].contains("acc_norm"));
  REQUIRE(subjects["groups"].size() == 2);
  CHECK(subjects["groups"][0] == json({{"group", "law"},
                                       {"examples", 4},
                                       {"acc", 0.5},
                                       {"acc_error", subjects["groups"][0]["acc_error"]}}));
  CHECK(subjects["groups"][0]["acc_error"].get<double>() == Approx(std::sqrt(1.0 / 12)));
  CHECK(subjects["groups"][1] ==
        json({{"group", "us_history"}, {"examples", 1}, {"acc", 1.0}, {"acc_error", nullptr}}));

  const auto longbench = [](const char* domain, const char* answer) {
    return json{{"domain", domain}, {"context", "A text."}, {"question", "Which?"},
                {"choice_A", "a"},  {"choice_B", "b"},      {"choice_C", "c"},
                {"choice_D", "d"},  {"answer", answer},     {"difficulty", "easy"}};
  };
  const std::string file = t.write(
      "longbench",
      {longbench("Code", "A"), longbench("Single-Document QA", "B"), longbench("Code", "C")});
  const json domains = t.result("choice", file);
  CHECK(domains["scores"]["acc"] == 1.0 / 3);
  CHECK(domains["groups"][0]["acc"] == 0.5);
  CHECK(domains["groups"][1]["group"] == "Single-Document QA");
  const std::string printed = t.printed("choice", file);
  CHECK(contains(printed, ": LongBench v2, 3 examples\n  acc 0.3333 ± 0.3333\n"));
  CHECK(contains(printed, "\n  Single-Document QA (1)  acc 0.0000\n"));

  const json words = t.result(
      "cloze", t.write("cloze", {{{"text", "Every winter"}}, {{"text", "Her brother painted"}}}));
  const double tokens = static_cast<double>(
      tokenizer.encode("Every winter").size() - tokenizer.encode("Every").size() +
      tokenizer.encode("Her brother painted").size() - tokenizer.encode("Her brother").size());
  CHECK(words["scores"]["examples"] == 2);
  CHECK(words["scores"]["acc"] == 0.0);
  CHECK(words["scores"]["loss"].get<double>() == Approx(nats * tokens / 2).epsilon(1e-6));
  CHECK(words["scores"]["perplexity"].get<double>() ==
        Approx(std::exp(nats * tokens / 2)).epsilon(1e-5));
}

TEST_CASE("what cannot be asked is refused before a token is computed, and nothing is written") {
  const PromptedText t;
  const std::string file = t.write("questions", kQuestions);
  const auto refused = [&](const Outcome& o, ExitCode code, const std::string& message) {
    t.check_refused(o, code, message);
    CHECK_FALSE(std::filesystem::exists(t.path("result.json")));
  };
  const Words output = {"--output", t.path("result.json")};
  const auto with = [&](const std::string& setting) {
    Words more = output;
    more.insert(more.end(), {"--task-set", setting});
    return more;
  };
  refused(t.eval("choices", file, output), ExitCode::usage, "did you mean choice?");
  refused(t.eval("choice", t.path("none"), output), ExitCode::io, t.path("none"));
  refused(t.eval("choice", file, with("form=query")), ExitCode::usage,
          "--task-set: unknown option of choice 'form'; did you mean format?");
  refused(t.eval("cloze", file, with("shots=1")), ExitCode::usage,
          "unknown option of cloze 'shots'; choose one of ");
  refused(t.eval("choice", file, with("format=qeury")), ExitCode::usage, "did you mean query?");
  refused(t.eval("choice", file, with("shots=-1")), ExitCode::usage,
          "--task-set shots: expected an integer from 0 to 1000, found -1");
  refused(t.eval("choice", file, with("bos=no")), ExitCode::usage,
          "--task-set bos: expected true or false");
  refused(t.eval("choice", file, with("file")), ExitCode::usage, "expected KEY=VALUE, found file");
  refused(t.eval("choice", file, with("file=\xff")), ExitCode::usage, "KEY=VALUE in UTF-8");
  refused(t.eval("choice", file, with("format=arc")), ExitCode::data, file + ":1: ");
  refused(t.eval("cloze", file, output), ExitCode::data, file + ":1: text: missing (a string)");
  refused(t.eval("choice", file, with("tokenizer=" + t.path("text.txt"))), ExitCode::data,
          t.path("text.txt"));
  for (const Words& other : {Words{"--lengths", "8"}, Words{"--seed", "1"}}) {
    refused(t.eval("choice", file, other), ExitCode::usage,
            other[0] + ": expected no value: the examples of ");
  }
  std::vector<json> bad = kQuestions;
  bad[2]["gold"] = 2;
  refused(t.eval("choice", t.write("bad", bad), output), ExitCode::data, "bad:3: gold: expected");
  refused(t.eval("choice", file, {"--output", t.path("none/result.json")}), ExitCode::io,
          t.path("none"));
  // The other tasks need lengths.
  refused(run({bamtrain_program(), "eval", t.checkpoint}, threads(1)), ExitCode::usage,
          "--lengths: missing (the run has none for perplexity");
  refused(
      run({bamtrain_program(), "eval", "--checkpoint", t.checkpoint, "--task", "copy"}, threads(1)),
      ExitCode::usage, "--lengths: missing (the run has none for copy");

  t.text.remove_copies();
  std::filesystem::remove(t.text.tokenizer);
  refused(t.eval("choice", file, output), ExitCode::data,
          "give its path with --task-set tokenizer");
}

TEST_CASE("a text longer than a learned table is refused, not cut") {
  const PromptedText t("learned");
  std::string words;
  for (int n = 0; n < 40; ++n) words += "The old sailor ";
  const std::string file =
      t.write("a", {{{"text", "Every winter"}}, {{"text", words + "crossed"}}});
  t.check_refused(t.eval("cloze", file), ExitCode::config, "at most 64 positions");
  t.check_refused(t.eval("cloze", file), ExitCode::config, " tokens: " + file + ":2");
  CHECK(contains(t.printed("cloze", file, {"--samples", "1"}), ": last words, 1 example\n"));
}

TEST_CASE("log-likelihoods that are no numbers end with their code, by the first of them") {
  PromptedText t;
  t.checkpoint = with_constant(t.checkpoint, t.path("changed"), "lm_head.weight", 3e38f);
  const std::string file = t.write("questions", kQuestions);
  const Outcome o = t.eval("choice", file, {"--output", t.path("result.json")});
  t.check_refused(o, ExitCode::nonfinite, "expected finite log-likelihoods, found NaN at " + file);
  CHECK_FALSE(std::filesystem::exists(t.path("result.json")));
}

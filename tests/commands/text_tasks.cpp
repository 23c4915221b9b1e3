// Text tasks in eval.tasks: during training, at its end, on several processes, and compared with
// bamtrain eval.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "data/tokenizers.h"
#include "tools/support.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

void write_lines(const std::string& path, const std::vector<json>& lines) {
  std::ofstream out(path);
  for (const json& line : lines) out << line.dump() << "\n";
}

/// A run on passkeys, tokenized with digits.json, that is evaluated on each of these tasks.
json text_measured_run(const Workplace& w) {
  json c = small_run(w);
  const Tokenizer tokenizer = Tokenizer::open(golden_path("digits.json"));
  c["model"]["vocab"] = tokenizer.vocab();
  c["data"] = {{"train",
                {{"task", "passkey"},
                 {"tokenizer", golden_path("digits.json")},
                 {"length", {150, 200}},
                 {"digits", 2}}}};
  c["train"] = {{"steps", 4}, {"sequences_per_step", 4}, {"micro_batch", 1}};
  c["checkpoint"] = {{"every", 2}};
  write_lines(w.path("choice.jsonl"),
              {{{"query", "A file is"}, {"choices", {"open", "shut", "gone"}}, {"gold", 1}},
               {{"query", "The pass"}, {"choices", {"key", "keys"}}, {"gold", 0}},
               {{"query", "1 2 3"}, {"choices", {"4", "5 6"}}, {"gold", 0}}});
  write_lines(w.path("cloze.jsonl"), {{{"text", "the sky is blue"}}, {{"text", "here we go"}}});
  write_lines(w.path("requests.jsonl"), {{{"context", "go"}, {"continuation", " on"}},
                                         {{"context", "12"}, {"continuation", "3"}},
                                         {{"context", "the"}, {"continuation", " sun"}}});
  write_lines(w.path("ruler.jsonl"), {{{"input", "1 2 3 4"}, {"outputs", {"5"}}},
                                      {{"input", "say"}, {"outputs", {"a", "1"}}}});
  c["eval"]["tasks"] = {
      {{"task", "passkey"}, {"lengths", {0, 200}}, {"depths", 3}, {"digits", 2}, {"every", 2}},
      {{"task", "passkey"}, {"lengths", {180}}, {"depths", 2}, {"generate", true}, {"name", "own"}},
      {{"task", "niah"}, {"file", w.path("ruler.jsonl")}, {"tokens", 3}, {"every", 2}},
      {{"task", "choice"}, {"file", w.path("choice.jsonl")}, {"name", "questions"}, {"every", 4}},
      {{"task", "cloze"}, {"file", w.path("cloze.jsonl")}},
      {{"task", "requests"}, {"file", w.path("requests.jsonl")}}};
  return c;
}

std::vector<std::string> command(const Workplace& w, json c, const std::string& out) {
  c["out_dir"] = w.path(out);
  return bamtrain_command(write_config(w, out + ".json", c));
}

std::string refused(const Workplace& w, const json& c) {
  const Outcome o = run(command(w, c, "refused"), threads(1));
  INFO(o.output);
  CHECK((o.code == 3 || o.code == 4 || o.code == 6));
  CHECK(o.output.find("step 1") == std::string::npos);
  return o.output;
}

}  // namespace

TEST_CASE("tasks of texts are measured while a run trains and at its end, as eval measures them") {
  const Workplace w;
  const json c = text_measured_run(w);
  const Outcome o = run(command(w, c, "one"), threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  const json results = read_results(w.path("one"));
  for (const char* name :
       {"passkey@0", "passkey@200", "own@180", "niah", "questions", "cloze", "requests"}) {
    INFO(name);
    REQUIRE(results.contains(name));
    CHECK(results[name]["step"] == 4);
  }
  CHECK(results["requests"]["answers"].size() == 3);
  CHECK(results["passkey@200"]["cells"].size() == 3);

  const auto lines = read_metrics(w.path("one"));
  REQUIRE(lines.size() == 4);
  CHECK(lines[1]["tasks"].size() == 3);  // passkey at two lengths, niah
  CHECK(lines[3]["tasks"].size() == 4);
  CHECK_FALSE(lines[2].contains("tasks"));
  // Examples from a file are the same in both. Drawn prompts differ; only their number is the same.
  CHECK(lines[3]["tasks"]["questions"]["acc"] == results["questions"]["acc"]);
  CHECK(lines[3]["tasks"]["passkey@200"]["prompts"] == results["passkey@200"]["prompts"]);

  const auto eval = [&](const std::string& task, const std::vector<std::string>& more) {
    std::vector<std::string> all = {
        bamtrain_program(), "eval", "--checkpoint", w.path("one/checkpoint-00000004"),
        "--task",           task,   "--output",     w.path(task + ".json")};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome evaluated = run(all, threads(1));
    INFO(evaluated.output);
    REQUIRE(evaluated.code == 0);
    return json::parse(read_text(w.path(task + ".json")))["scores"];
  };
  const json passkeys =
      eval("passkey", {"--lengths", "0,200", "--task-set", "depths=3", "--task-set", "digits=2"});
  for (const char* number : {"exact_match", "accuracy", "cells", "tokens"}) {
    INFO(number);
    CHECK(passkeys[0][number] == results["passkey@0"][number]);
    CHECK(passkeys[1][number] == results["passkey@200"][number]);
  }
  const std::string digits = "tokenizer=" + golden_path("digits.json");
  const json words =
      eval("cloze", {"--task-set", "file=" + w.path("cloze.jsonl"), "--task-set", digits});
  for (const char* number : {"acc", "loss", "perplexity", "loss_error"}) {
    INFO(number);
    CHECK(words[number] == results["cloze"][number]);
  }

  // Results for the same weights and files are reused; a changed file is evaluated again.
  const std::string again = run(command(w, c, "one"), threads(1)).output;
  CHECK(again.find("of step 4:") == std::string::npos);
  write_lines(w.path("cloze.jsonl"), {{{"text", "the sky is red"}}});
  const std::string other = run(command(w, c, "one"), threads(1)).output;
  CHECK(other.find("cloze of step 4: acc") != std::string::npos);
  CHECK(other.find("questions of step 4:") == std::string::npos);
}

TEST_CASE("tasks of texts have the same bits on one, two and four processes") {
  if (!have_mpi()) return;
  const Workplace w;
  const json c = text_measured_run(w);
  json alone;
  for (const int n : {1, 2, 4}) {
    INFO(n);
    const std::string out = "np" + std::to_string(n);
    const std::vector<std::string> one = command(w, c, out);
    const Outcome o = run(n > 1 ? mpirun_command(n, one) : one, threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    json got = {{"end", read_results(w.path(out))}, {"within", json::array()}};
    for (const json& line : read_metrics(w.path(out))) {
      got["within"].push_back(line.value("tasks", json()));
    }
    if (n == 1) alone = got;
    CHECK(got == alone);
  }
}

TEST_CASE("what a task of texts cannot be asked ends a run before its first step") {
  const Workplace w;
  const json whole = text_measured_run(w);
  const auto with = [&](const json& entry) {
    json c = whole;
    c["eval"]["tasks"] = {entry};
    return refused(w, c);
  };
  const auto mentions = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  mentions(with({{"task", "passkey"}, {"lengths", {20}}}), "eval.tasks[0].lengths");
  mentions(with({{"task", "passkey"}, {"digits", 3}, {"prefix_digits", 3}}),
           "eval.tasks[0].prefix_digits");
  mentions(with({{"task", "passkey"}, {"tokenizer", w.path("none")}}), "none");
  mentions(with({{"task", "paskey"}}), "did you mean passkey");
  mentions(with({{"task", "niah"}, {"lengths", {512}}}), "eval.tasks[0].tasks");
  mentions(with({{"task", "niah"}, {"tasks", {"niah_single_9"}}, {"lengths", {512}}}),
           "eval.tasks[0].tasks");
  mentions(with({{"task", "niah"}, {"tasks", {"niah_single_1"}}, {"lengths", {100}}}),
           "eval.tasks[0].lengths");
  mentions(with({{"task", "niah"}, {"tasks", {"niah_single_2"}}, {"lengths", {4096}}}),
           "eval.tasks[0].haystack");
  mentions(with({{"task", "choice"}}), "eval.tasks[0].file");
  mentions(with({{"task", "choice"}, {"file", w.path("cloze.jsonl")}}), "cloze.jsonl:1");
  mentions(with({{"task", "choice"}, {"file", w.path("choice.jsonl")}, {"shots", 2}}),
           "eval.tasks[0].shots");
  mentions(with({{"task", "cloze"}, {"file", w.path("cloze.jsonl")}, {"lengths", {5}}}),
           "eval.tasks[0].lengths");
  mentions(with({{"task", "requests"}, {"file", w.path("absent.jsonl")}}), "absent.jsonl");
  json twice = whole;
  twice["eval"]["tasks"] = {{{"task", "cloze"}, {"file", w.path("cloze.jsonl")}},
                            {{"task", "cloze"}, {"file", w.path("cloze.jsonl")}}};
  mentions(refused(w, twice), "eval.tasks[1].name");
}

TEST_CASE("memory that a task of the run's end has not is missed before its first step") {
  const Workplace w;
  json c = text_measured_run(w);
  const auto limited = [&](const json& entry) {
    c["eval"]["tasks"] = {entry};
    Words all = {"sh", "-c", "ulimit -v 400000; exec \"$@\"", "sh"};
    for (const std::string& word : command(w, c, "limited")) all.push_back(word);
    const Outcome o = run(all, threads(1));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::device));
    CHECK(o.output.find("memory of eval.tasks[0]") != std::string::npos);
    CHECK(o.output.find("lower its samples") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(w.path("limited")));
  };
  limited({{"task", "passkey"}, {"lengths", {2'000'000}}, {"depths", 2}});
  limited({{"task", "passkey"}, {"lengths", {200}}, {"samples", 100'000'000}});
}

TEST_CASE("processes that have other files under one name are told apart") {
  if (!have_mpi()) return;
  const Workplace w;
  json c = text_measured_run(w);
  c["eval"]["tasks"] = {{{"task", "requests"}, {"file", "asked.jsonl"}}};
  Words all = {"mpirun", "--allow-run-as-root", "--oversubscribe"};
  for (const char* folder : {"here", "there"}) {
    std::filesystem::create_directory(w.path(folder));
    write_lines(w.path(folder) + "/asked.jsonl", {{{"context", "go"}, {"continuation", folder}}});
    if (all.back() != "--oversubscribe") all.emplace_back(":");
    for (const std::string& word : Words{"-np", "1", "-wdir", w.path(folder)}) all.push_back(word);
    for (const std::string& word : command(w, c, "apart")) all.push_back(word);
  }
  const Outcome o = run(all, threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK(o.output.find("eval.tasks[0]") != std::string::npos);
  CHECK(o.output.find("give every process the same files") != std::string::npos);
}

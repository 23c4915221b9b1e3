// Prompts, compared with those of lm-evaluation-harness, which scripts/golden/prompts.py wrote.

#include "prompts/choice_format.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "data/files.h"
#include "prompts/choice_file.h"
#include "prompts/request_file.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using nlohmann::json;

json golden_cases() {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  return json::parse(read_bytes(std::string(source) + "/tests/prompts/golden.json"))["cases"];
}

std::string lines_of(const json& records) {
  std::string lines;
  for (const json& record : records) lines += record.dump() + "\n";
  return lines;
}

/// The format recognised from a record's fields.
std::string recognised(const json& record) {
  return recognised_format(JsonObject(record, {"file:1", ExitCode::data, "correct it"})).name;
}

/// The message with which a record is refused as one of that format.
std::string refused(const std::string& format, const json& record) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  write_bytes(path, "\n" + record.dump() + "\n");
  return error_of(ExitCode::data,
                  [&] { read_choice_file(path, &choice_format(format, "format"), INT64_MAX); });
}

json query() { return {{"query", "Is it?"}, {"choices", {"yes", "no"}}, {"gold", 1}}; }

}  // namespace

TEST_CASE("questions and shots are the harness's, to the byte") {
  const TemporaryFolder folder;
  int formats = 0;
  for (const json& c : golden_cases()) {
    const std::string name = c["format"], path = folder.file("records"), more = folder.file("more");
    if (name == "cloze") continue;
    INFO(name << ", " << c["task"]);
    write_bytes(path, lines_of(c["records"]));
    write_bytes(more, lines_of(c["shot_records"]));
    ChoiceFile file = read_choice_file(path, nullptr, INT64_MAX);
    CHECK(file.format->name == name);
    prepend_few_shot(&file, more, c["shots"]);
    REQUIRE(file.examples.size() == c["requests"].size());
    for (size_t n = 0; n < file.examples.size(); ++n) {
      const ChoiceExample& e = file.examples[n];
      CHECK(e.gold == c["golds"][n]);
      REQUIRE(e.choices() == c["requests"][n].size());
      REQUIRE(e.characters.size() == e.choices());
      for (size_t i = 0; i < e.choices(); ++i) {
        CHECK(e.context(i) == c["requests"][n][i]["context"].get<std::string>());
        CHECK(e.continuation(i) == c["requests"][n][i]["continuation"].get<std::string>());
      }
    }
    ++formats;
  }
  CHECK(formats >= 7);
}

TEST_CASE("the last words of texts are the harness's, to the byte") {
  const TemporaryFolder folder;
  int texts = 0;
  for (const json& c : golden_cases()) {
    if (c["format"] != "cloze") continue;
    write_bytes(folder.file("texts"), lines_of(c["records"]));
    const RequestFile file = read_cloze_file(folder.file("texts"), INT64_MAX);
    REQUIRE(file.requests.size() == c["requests"].size());
    for (size_t n = 0; n < file.requests.size(); ++n, ++texts) {
      CHECK(file.requests[n].context == c["requests"][n][0]["context"].get<std::string>());
      CHECK(file.requests[n].continuation ==
            c["requests"][n][0]["continuation"].get<std::string>());
    }
  }
  CHECK(texts == 3);
}

TEST_CASE("prompts that are ready stand as they are") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  write_bytes(path, R"({"query": " Q [title]: \n", "choices": ["a  b", "é"], "gold": "1"})");
  ChoiceFile file = read_choice_file(path, nullptr, INT64_MAX);
  REQUIRE(file.examples.size() == 1);
  CHECK(file.format->name == "query");
  CHECK(file.examples[0].context(1) == " Q [title]: \n");
  CHECK(file.examples[0].continuations == std::vector<std::string>{" a  b", " é"});
  CHECK(file.examples[0].characters == std::vector<int64_t>{4, 1});  // of the choice, no space
  CHECK(file.examples[0].gold == 1);

  write_bytes(path, R"({"ctx": "he [x]", "endings": ["sits", "runs [y]"], "label": 0, "ind": 7})");
  file = read_choice_file(path, nullptr, INT64_MAX);
  CHECK(file.format->name == "endings");
  CHECK(file.examples[0].context(0) == "he [x]");
  CHECK(file.examples[0].continuation(1) == " runs [y]");
  CHECK(file.examples[0].gold == 0);
}

TEST_CASE("groups are what scores are told by: subjects of MMLU, domains of LongBench") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  for (const json& c : golden_cases()) {
    if (c["format"] != "mmlu" && c["format"] != "longbench_v2") continue;
    write_bytes(path, lines_of(c["records"]));
    const ChoiceFile file = read_choice_file(path, nullptr, INT64_MAX);
    CHECK(file.examples[0].group ==
          c["records"][0][c["format"] == "mmlu" ? "subject" : "domain"].get<std::string>());
    CHECK_FALSE(file.format->normalized);
  }
}

TEST_CASE("a format is known by its fields, and by more of them rather than fewer") {
  for (const json& c : golden_cases()) {
    if (c["format"] != "cloze") CHECK(recognised(c["records"][0]) == c["format"]);
  }
  json both = query();
  both.update({{"goal", "g"}, {"sol1", "a"}, {"sol2", "b"}, {"label", 0}});
  const std::string ambiguous = error_of(ExitCode::data, [&] { recognised(both); });
  CHECK(contains(ambiguous,
                 "file:1: expected the fields of one format, not of piqa {goal, sol1, sol2, label} "
                 "and query {query, choices, gold}, found {choices, goal, gold, label, query, "
                 "sol1, sol2}; choose --task-set format=piqa or --task-set format=query"));
  const std::string unknown = error_of(ExitCode::data, [] {
    recognised({{"prompt", "x"}, {"answer", "y"}});
  });
  for (const std::string& name : choice_format_names()) CHECK(contains(unknown, name + " {"));
  CHECK(contains(unknown, "found {answer, prompt}"));
  CHECK(contains(error_of(ExitCode::usage, [] { choice_format("helaswag", "here"); }),
                 "did you mean hellaswag?"));
}

TEST_CASE("records that cannot be asked are refused by file, line and field") {
  json r = query();
  r["gold"] = 2;
  CHECK(contains(refused("query", r), "a.jsonl:2: gold: expected an integer from 0 to 1, found 2"));
  for (const json& gold : std::vector<json>{-1, 0.0, "", "1x", nullptr, true, json::array({0})}) {
    r["gold"] = gold;
    INFO(gold);
    CHECK(contains(refused("query", r), "a.jsonl:2: gold: expected an integer from 0 to 1"));
  }
  r.erase("gold");
  CHECK(contains(refused("query", r), "gold: expected an integer from 0 to 1, found no such"));
  r = query();
  r["choices"] = json::array();
  CHECK(contains(refused("query", r), "choices: expected a list of at least one text"));
  r["choices"] = {"a", 3};
  CHECK(contains(refused("query", r), "choices: expected a list of texts, found"));
  r["choices"] = {"a", ""};
  CHECK(contains(refused("query", r), "a.jsonl:2: expected choices and continuations with more"));
  r["choices"] = {"a", "\u00a0 "};
  CHECK(contains(refused("query", r), "a.jsonl:2: expected choices and continuations with more"));
  r = query();
  r["query"] = 3;
  CHECK(contains(refused("query", r), "a.jsonl:2: query: expected a string, found 3"));

  const json arc = {{"question", "q"},
                    {"choices", {{"text", {"a", "b"}}, {"label", {"A", "B"}}}},
                    {"answerKey", "C"}};
  CHECK(contains(refused("arc", arc), "answerKey: expected one of A, B, found \"C\""));
  json fewer = arc;
  fewer["choices"]["label"] = {"A"};
  CHECK(contains(refused("arc", fewer), "choices: label: expected a label for each of 2 texts"));
  const json blank = {{"sentence", "a _ b"}, {"option1", "x"}, {"option2", "y"}, {"answer", "1"}};
  json other = blank;
  other["sentence"] = "a b";
  CHECK(contains(refused("winogrande", other), "sentence: expected a blank"));
  other = blank;
  other["answer"] = "";
  CHECK(contains(refused("winogrande", other), "answer: expected \"1\" or \"2\""));
  other = blank;
  other["sentence"] = "a _ ";
  CHECK(contains(refused("winogrande", other), "continuations with more than white space"));
  other = blank;
  other["option2"] = "";
  CHECK(contains(refused("winogrande", other), "continuations with more than white space"));
  const json mmlu = {
      {"question", "q"}, {"subject", "s"}, {"choices", {"a", "b", "c"}}, {"answer", 0}};
  CHECK(contains(refused("mmlu", mmlu), "choices: expected four texts"));
}

#include "prompts/choice_file.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/sha256.h"
#include "data/files.h"
#include "tools/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

std::string mmlu_line(const std::string& subject, const std::string& question, int answer) {
  return nlohmann::json{{"subject", subject},
                        {"question", question},
                        {"choices", {"w", "x", "y", "z"}},
                        {"answer", answer}}
             .dump() +
         "\n";
}

constexpr const char* kAbout = "The following are multiple choice questions (with answers) about ";

std::string asked_of(const std::string& question) {
  return question + "\nA. w\nB. x\nC. y\nD. z\nAnswer:";
}

}  // namespace

TEST_CASE("the first of a file are read, and the whole of it digested") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl");
  const std::string bytes =
      mmlu_line("a", "1", 0) + "\n" + mmlu_line("a", "2", 1) + mmlu_line("b", "3", 2);
  write_bytes(path, bytes);
  const ChoiceFile two = read_choice_file(path, nullptr, 2);
  REQUIRE(two.examples.size() == 2);
  CHECK(two.examples[0].line == 1);
  CHECK(two.examples[1].line == 3);
  CHECK(two.sha256 == sha256_file(path));
  CHECK(read_choice_file(path, nullptr, INT64_MAX).examples.size() == 3);
}

TEST_CASE("shots are the first of the question's own subject, behind what leads them in") {
  const TemporaryFolder folder;
  const std::string path = folder.file("test"), dev = folder.file("dev");
  write_bytes(path, mmlu_line("world_history", "Q", 0) + mmlu_line("law", "R", 1));
  write_bytes(dev, mmlu_line("law", "l1", 0) + mmlu_line("world_history", "h1", 1) +
                       mmlu_line("world_history", "h2", 2) + mmlu_line("law", "l2", 3) +
                       mmlu_line("law", "l3", 3));
  ChoiceFile file = read_choice_file(path, nullptr, INT64_MAX);
  prepend_few_shot(&file, dev, 2);
  CHECK(file.examples[0].context(3) == kAbout + std::string("world history.\n\n") + asked_of("h1") +
                                           " B\n\n" + asked_of("h2") + " C\n\n" + asked_of("Q"));
  CHECK(file.examples[1].context(0) == kAbout + std::string("law.\n\n") + asked_of("l1") +
                                           " A\n\n" + asked_of("l2") + " D\n\n" + asked_of("R"));

  file = read_choice_file(path, nullptr, INT64_MAX);
  CHECK(contains(error_of(ExitCode::data, [&] { prepend_few_shot(&file, dev, 3); }),
                 dev + ": expected 3 examples of \"world_history\", found 2"));
  file = read_choice_file(path, nullptr, INT64_MAX);
  prepend_few_shot(&file, "", 0);
  CHECK(file.examples[1].context(0) == kAbout + std::string("law.\n\n") + asked_of("R"));
}

TEST_CASE("files of the harness's own tasks are read, but for PIQA's, which says two things") {
  const std::string folder = shared_data("eval");
  if (folder.empty()) return;
  const auto read = [&](const std::string& name, const ChoiceFormat* format = nullptr) {
    return read_choice_file(folder + "/" + name, format, INT64_MAX);
  };
  const ChoiceFile arc = read("arc_easy.test.jsonl");
  CHECK(arc.format->name == "query");
  CHECK(arc.examples.size() == 2376);
  CHECK(arc.examples[1].context(0) ==
        "Question: Which piece of safety equipment is used to keep mold spores from entering the "
        "respiratory system?\nAnswer:");
  CHECK(arc.examples[1].continuation(1) == " breathing mask");
  CHECK(arc.examples[1].gold == 1);
  const ChoiceFile swag = read("hellaswag_val.converted.jsonl");
  CHECK(swag.format->name == "endings");
  CHECK(swag.examples.size() == 10042);
  const ChoiceFile blanks = read("winogrande.validation.jsonl");
  CHECK(blanks.format->name == "winogrande");
  CHECK(blanks.examples[0].context(1) == "Sarah was a much better surgeon than Maria so Maria");
  CHECK(blanks.examples[0].continuation(1) == " always got the easier cases.");
  CHECK(blanks.examples[0].gold == 1);
  CHECK(read("openbookqa.test.jsonl").examples.size() == 500);
  CHECK(contains(error_of(ExitCode::data, [&] { read("piqa.validation.jsonl"); }),
                 "not of piqa {goal, sol1, sol2, label} and query {query, choices, gold}"));
  const ChoiceFile piqa = read("piqa.validation.jsonl", &choice_format("piqa", "format"));
  CHECK(piqa.examples.size() == 1838);
  CHECK(piqa.examples[1].context(0) == "Question: dresser\nAnswer:");
}

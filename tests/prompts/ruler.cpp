#include "prompts/ruler.h"

#include "data/files.h"
#include "prompts/support.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("RULER's tasks are found by its names") {
  const HaystackText text("Words. That stand. For an essay.");
  // How a prompt of each task begins, and how many tokens it leaves for the answer.
  const std::map<std::string, std::pair<std::string, int64_t>> expected = {
      {"niah_single_1", {"A special magic number", 128}},
      {"niah_single_2", {"A special magic number", 128}},
      {"niah_single_3", {"A special magic uuid", 128}},
      {"niah_multikey_1", {"A special magic number", 128}},
      {"niah_multikey_2", {"A special magic number", 128}},
      {"niah_multikey_3", {"A special magic uuid", 128}},
      {"niah_multivalue", {"Some special magic numbers", 128}},
      {"niah_multiquery", {"Some special magic numbers", 128}},
      {"vt", {"Memorize and track", 30}},
      {"cwe", {"Below is a numbered list", 120}},
      {"fwe", {"Read the following coded text", 50}}};
  CHECK(ruler_tasks().size() == expected.size());
  for (const std::string& name : ruler_tasks()) {
    INFO(name);
    REQUIRE(expected.contains(name));
    const TextPrompt p = ruler_prompts(name, {&text}, 2000, 1, [](const std::string& s) {
                           return bytes(s) / 3;
                         }).prompt(0);
    CHECK(p.text.starts_with(expected.at(name).first));
    CHECK(p.tokens_to_generate == expected.at(name).second);
  }
}

TEST_CASE("another name is refused, and a depth where there is no needle") {
  const auto refused = [](const char* name, std::optional<double> depth) {
    return error_of(ExitCode::config, [&] {
      ruler_prompts(name, {nullptr, depth}, 9000, 1, bytes);
    });
  };
  CHECK(contains(refused("niah_single_4", std::nullopt),
                 "{task}: unknown task 'niah_single_4'; did you mean niah_single_"));
  CHECK(contains(refused("vt", 0.5), "{depth}: expected a task of one needle"));
}

}  // namespace
}  // namespace bamtrain

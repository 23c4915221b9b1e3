#include "prompts/prompt_file.h"

#include "catch.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("RULER's lines are read") {
  const TemporaryFolder folder;
  write_bytes(folder.file("p.jsonl"),
              R"({"index": 0, "input": "What\nis it? It is", "outputs": ["a", "b"], "length": 12})"
              "\n\n"
              R"({"input": "Q", "outputs": ["c"], "answer_prefix": " A:"})");
  const auto prompts = read_prompts(folder.file("p.jsonl"), 128);
  REQUIRE(prompts.size() == 2);
  CHECK(prompts[0].text == "What\nis it? It is");
  CHECK(prompts[0].outputs == std::vector<std::string>{"a", "b"});
  CHECK(prompts[0].tokens_to_generate == 128);
  CHECK(prompts[1].text == "Q A:");
}

TEST_CASE("what is no prompt is refused by its line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& content) {
    write_bytes(folder.file("p"), content);
    return error_of(ExitCode::data, [&] { read_prompts(folder.file("p"), 1); });
  };
  const std::string good = R"({"input": "Q", "outputs": ["c"]})"
                           "\n";
  for (const char* bad :
       {R"({"input": "Q"})", R"({"outputs": ["c"]})", R"({"input": 3, "outputs": ["c"]})",
        R"({"input": "", "outputs": ["c"]})", R"({"input": "Q", "outputs": []})",
        R"({"input": "Q", "outputs": "c"})", R"({"input": "Q", "outputs": [1]})",
        R"({"input": "Q", "outputs": ["c"], "answer_prefix": 1})",
        R"({"input": "Q", "outputs": ["c", ""]})", "{", "[]"}) {
    INFO(bad);
    CHECK(contains(refused(good + bad + "\n"), "p:2"));
  }
  CHECK(contains(refused("\n"), "no prompts"));
}

}  // namespace
}  // namespace bamtrain

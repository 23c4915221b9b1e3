// Examples from a user's file, compared with sequences worked out by hand.

#include "data/example_file.h"

#include <fstream>

#include "data/files.h"
#include "tools/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

ExampleFile read_examples(const std::string& text, const Tokenizer* tokenizer = nullptr) {
  const TemporaryFolder folder;
  write_bytes(folder.file("x.jsonl"), text);
  return ExampleFile::read(folder.file("x.jsonl"), tokenizer, 10, 8);
}

Example example(const ExampleFile& file, int64_t n) {
  Example e;
  file.get(n, &e);
  return e;
}

std::string example_refusal(const std::string& text) {
  return error_or_none(ExitCode::data, [&] { read_examples(text); });
}

}  // namespace

TEST_CASE("a prompt is continued by its target, which alone is asked for") {
  const ExampleFile f = read_examples(R"({"prompt": [5, 9, 2], "target": [7, 1]}
{"target": [3], "prompt": [4]}

{"input": [9, 8, 7], "targets": [-1, 0, 7]}
{"length":2,"input":[9,8,7],"targets":[null,0,7]})");
  REQUIRE(f.size() == 4);
  CHECK(example(f, 0) == Example{{5, 9, 2, 7}, {-1, -1, 7, 1}});
  CHECK(example(f, 1) == Example{{4}, {3}});
  CHECK(example(f, 2) == Example{{9, 8, 7}, {-1, 0, 7}});
  CHECK(example(f, 3) == example(f, 2));
  CHECK(f.longest() == 4);
  CHECK(f.length(1) == 1);
}

TEST_CASE("what is no example is refused by its line") {
  const auto mentions = [](const std::string& text, const char* part) {
    const std::string message = example_refusal(text);
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
  };
  mentions("", "no examples");
  mentions("{\"prompt\": [1], \"target\": [2]}\n[1]\n", "x.jsonl:2");
  mentions("{\"prompt\": [1], \"target\": [8]}", "ids from 0 to 7");
  mentions("{\"prompt\": [10], \"target\": [2]}", "ids from 0 to 9");
  mentions("{\"prompt\": [1.5], \"target\": [2]}", "1.5");
  mentions("{\"prompt\": [1], \"target\": []}", "at least one target");
  mentions("{\"prompt\": [], \"target\": [1, 2]}", "at least one id in \"prompt\"");
  mentions("{\"input\": [1], \"targets\": [-1]}", "at least one target");
  mentions("{\"input\": [1, 2], \"targets\": [1]}", "1 targets, 2 inputs");
  mentions("{\"input\": [1], \"targets\": [-2]}", "ids from -1 to 7");
  mentions("{\"prompt\": \"a\", \"target\": \"b\"}", "tokenizer");
  mentions("{\"prompt\": [1], \"target\": \"b\"}", "both text or both ids");
  mentions("{\"prompt\": [1], \"target\": [1], \"more\": 1}", "both text or both ids");
  mentions("{\"prompt\": [1], \"target\": [1]", "x.jsonl:1");
}

TEST_CASE("text is the tokenizer's ids of prompt and target together") {
  const TemporaryFolder folder;
  const Tokenizer t = Tokenizer::open(small_tokenizer(folder));
  write_bytes(folder.file("x.jsonl"),
              R"({"prompt": "The old sailor crossed", "target": " a quiet river."})");
  const ExampleFile f = ExampleFile::read(folder.file("x.jsonl"), &t, t.vocab(), t.vocab());
  Symbols whole = t.encode("The old sailor crossed a quiet river.");
  const size_t prompt = t.encode("The old sailor crossed").size();
  const Example e = example(f, 0);
  REQUIRE(e.inputs.size() == whole.size() + 1);
  CHECK(e.inputs[0] == t.bos());
  CHECK(Symbols(e.inputs.begin() + 1, e.inputs.end()) == whole);
  whole.push_back(t.eos());
  for (size_t i = 0; i < e.targets.size(); ++i) {
    CHECK(e.targets[i] == (i < prompt ? kIgnoreIndex : whole[i]));
  }
}

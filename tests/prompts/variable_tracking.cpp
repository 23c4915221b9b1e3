#include "prompts/variable_tracking.h"

#include <set>

#include "data/files.h"
#include "prompts/support.h"

namespace bamtrain {
namespace {

using namespace testing;

const std::string kChainBegin =
    "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n";

/// The content of a question and of the answer after it.
struct ChainReading {
  std::string value, answer;
  std::vector<std::string> lines;
};

ChainReading read_chain(const std::string& text) {
  ChainReading r;
  const std::string asks = "\nQuestion: Find all variables that are assigned the value ";
  REQUIRE(text.starts_with(kChainBegin));
  r.lines = split(between(text, kChainBegin, asks), "\n");
  r.value = between(text, asks, " in the text above. Answer: ");
  const std::string answer =
      "According to the chain(s) of variable assignment in the text above, 5 variables are "
      "assigned "
      "the value " +
      r.value + ", they are: ";
  const size_t at = text.find(answer);
  REQUIRE(at != std::string::npos);
  r.answer = text.substr(at + answer.size());
  return r;
}

/// Names that have the value, found by repeated passes over the lines.
std::vector<std::string> names_of(const ChainReading& r) {
  std::set<std::string> values = {r.value};
  std::vector<std::string> names;
  for (bool more = true; more;) {
    more = false;
    for (const std::string& line : r.lines) {
      if (!line.starts_with("VAR ")) continue;
      const auto sides = split(line.substr(4), " = ");
      REQUIRE(sides.size() == 2);
      std::string right = sides[1];
      if (right.starts_with("VAR ")) {
        REQUIRE(right.ends_with(" "));
        right = right.substr(4, right.size() - 5);
      }
      if (!values.contains(right) || values.contains(sides[0])) continue;
      values.insert(sides[0]);
      names.push_back(sides[0]);
      more = true;
    }
  }
  return names;
}

TEST_CASE("a prompt of variable tracking is RULER's, byte for byte") {
  const TextPrompt p = variable_tracking_prompts(700, 1, [](const std::string& text) {
                         return std::ssize(split(text, " "));
                       }).prompt(0);
  std::string text = p.text;
  for (size_t at; (at = text.find(kFillerLine)) != std::string::npos;) {
    text.replace(at, kFillerLine.size(), "*");
  }
  CHECK(text ==
        "Memorize and track the chain(s) of variable assignment hidden in the following text.\n"
        "\n*\n*\n*\nVAR LXA = 29449\n*\n*\n*\n*\nVAR PQJ = VAR LXA \n*\nVAR CCV = VAR PQJ \n*\n*\n"
        "VAR MRP = VAR CCV \n*\n*\n*\n*\n*\n*\n*\n*\nVAR LVA = VAR MRP \n*\n*\n*\n"
        "Question: Find all variables that are assigned the value 29449 in the text above. Answer: "
        "According to the chain(s) of variable assignment in the text above, 5 variables are "
        "assigned the value 29449, they are: LXA PQJ CCV MRP LVA\n"
        "Memorize and track the chain(s) of variable assignment hidden in the following text.\n"
        "\nVAR OWYRQ = 44633\n*\n*\n*\nVAR TXPZB = VAR OWYRQ \n*\nVAR QOPIW = VAR TXPZB \n*\n"
        "VAR GGRAI = VAR QOPIW \n*\n*\nVAR CCFGU = VAR GGRAI \n*\n"
        "Question: Find all variables that are assigned the value 44633 in the text above. Answer: "
        "According to the chain(s) of variable assignment in the text above, 5 variables are "
        "assigned the value 44633, they are: ");
  CHECK(p.outputs == std::vector<std::string>{"OWYRQ", "TXPZB", "QOPIW", "GGRAI", "CCFGU"});
}

TEST_CASE("a thousand prompts of variable tracking are answered by their text") {
  constexpr int64_t kLength = 7000;
  const TokenCount count = [](const std::string& text) { return bytes(text) / 3; };
  const PromptSet prompts = variable_tracking_prompts(kLength, 1, count);
  std::vector<int64_t> first(26), digits(9);
  int64_t early = 0, late = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const TextPrompt p = prompts.prompt(i);
    const size_t second = p.text.find(kChainBegin, 1);
    REQUIRE(second != std::string::npos);
    const ChainReading example = read_chain(p.text.substr(0, second)),
                       r = read_chain(p.text.substr(second));
    const auto solved = names_of(example), names = names_of(r);
    CHECK(example.answer ==
          solved[0] + " " + solved[1] + " " + solved[2] + " " + solved[3] + " " + solved[4] + "\n");
    CHECK(example.value != r.value);
    for (const std::string& name : solved) CHECK(name.size() == 3);
    CHECK(r.answer.empty());
    CHECK(names == p.outputs);  // the chain's, in its order
    REQUIRE(names.size() == 5);
    for (const std::string& name : names) CHECK(name.size() == 5);
    CHECK(r.value.size() == 5);
    ++digits.at(static_cast<size_t>(r.value[0] - '1'));
    ++first.at(static_cast<size_t>(names[0][0] - 'A'));
    // The chain's lines in their order, each before a line of noise.
    std::vector<std::string> chain;
    int64_t noise = 0, before_first = -1;
    std::string line_before = kFillerLine;
    for (const std::string& line : r.lines) {
      if (line == kFillerLine) {
        ++noise;
      } else {
        CHECK(line_before == kFillerLine);  // different lines
        chain.push_back(line);
        if (before_first < 0) before_first = noise;
      }
      line_before = line;
    }
    CHECK(line_before == kFillerLine);
    CHECK(chain == std::vector<std::string>{"VAR " + names[0] + " = " + r.value,
                                            "VAR " + names[1] + " = VAR " + names[0] + " ",
                                            "VAR " + names[2] + " = VAR " + names[1] + " ",
                                            "VAR " + names[3] + " = VAR " + names[2] + " ",
                                            "VAR " + names[4] + " = VAR " + names[3] + " "});
    REQUIRE(p.needles.size() == 5);
    for (size_t n = 0; n < 5; ++n) CHECK(at(p, p.needles[n]) == chain[n]);
    // The first of five lines among n is at (n - 5) / 6 on average.
    early += before_first;
    late += (noise - 5) / 6;
    CHECK(count(p.text) + 30 <= kLength);
    CHECK(count(p.text) + 30 > kLength - 40);
    CHECK(count(p.text.substr(0, second)) + 30 <= 500);
    CHECK(count(p.text.substr(0, second)) + 30 > 500 - 40);
  }
  CHECK(is_uniform(first));
  CHECK(is_uniform(digits));
  CHECK(std::abs(early - late) < late / 8);
}

TEST_CASE("lengths that hold no chain are refused") {
  CHECK(contains(error_of(ExitCode::config, [] { variable_tracking_prompts(1000, 1, bytes); }),
                 "{length}: expected at least "));
}

}  // namespace
}  // namespace bamtrain

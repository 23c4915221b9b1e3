// Passkeys, compared with texts written by hand, for a tokenizer of bytes and pieces of English;
// and with the counts of BAM's published figure, for BAM's tokenizer.

#include "prompts/passkey.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <set>

#include "catch.h"
#include "data/files.h"
#include "data/tokenizers.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

const Tokenizer& small() {
  static const Tokenizer t = Tokenizer::open(golden_path("digits.json"));
  return t;
}

TEST_CASE("a passkey's prompt is its pieces, one behind the other") {
  const Passkey passkey(small(), {});
  const PasskeyPrompt p = passkey.prompt("90210", 3, 1);
  CHECK(small().decode(p.prompt) ==
        "There is an important info hidden inside a lot of irrelevant text. Find it and memorize "
        "them. I will quiz you about the important information there."
        "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
        "The pass key is 90210. Remember it. 90210 is the pass key."
        "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
        "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
        "What is the pass key? The pass key is");
  CHECK(small().decode(p.answer) == " 90210");
  CHECK(p.answer.size() == 6);
  CHECK(p.given == 1);
  CHECK(std::ssize(p.prompt) == passkey.fixed() + 3 * passkey.filler());
  CHECK(passkey.filler() ==
        std::ssize(small().encode("The grass is green. The sky is blue. The sun is yellow. Here we "
                                  "go. There and back again.")));
}

TEST_CASE("a passkey may be asked for as the paper prints it, and its first digits be given") {
  const Passkey passkey(small(), {6, 2, PasskeyQuestion::paper});
  const PasskeyPrompt p = passkey.prompt("701234", 0, 0);
  CHECK(small().decode(p.prompt) ==
        "There is an important info hidden inside a lot of irrelevant text. Find it and memorize "
        "them. I will quiz you about the important information there."
        "The pass key is 701234. Remember it. 701234 is the pass key."
        "The passkey is:");
  CHECK(p.given == 3);
  CHECK(small().decode({p.answer.begin() + p.given, p.answer.end()}) == "1234");
}

TEST_CASE("BAM's figure has 841 tokens with the answer, in its own tokenizer and behind a BOS") {
  const std::string path = shared_data("tokenizer/mistral-7b-v0.3.model");
  if (path.empty()) return;
  const Tokenizer mistral = Tokenizer::open(path);
  PasskeyOptions options;
  options.bos = true;
  const Passkey passkey(mistral, options);
  const PasskeyPrompt p = passkey.prompt("12345", 32, 0);
  constexpr int64_t kTask = 32, kNeedle = 25, kFillers = 768, kQuestionAndAnswer = 16;
  CHECK(32 * passkey.filler() == kFillers);
  CHECK(passkey.fixed() + std::ssize(p.answer) == kTask + kNeedle + kQuestionAndAnswer);
  CHECK(std::ssize(p.prompt) + std::ssize(p.answer) == 841);
  CHECK(p.prompt[0] == 1);
  CHECK(p.answer.size() == 6);
  // The key's digits, twice within the needle's 25 tokens.
  const auto begin = p.prompt.begin() + kTask;
  const auto digits = [&](auto from) {
    return std::search(from, begin + kNeedle, p.answer.begin() + 1, p.answer.end());
  };
  const auto first = digits(begin), second = digits(first + 1);
  CHECK(first - begin == 5);    // _The _pass _key _is _
  CHECK(second - begin == 15);  // . _Remember _it . _
  // As published, without BOS: one less.
  CHECK(Passkey(mistral, {}).fixed() == 66);
  CHECK(Passkey(mistral, {5, 0, PasskeyQuestion::paper}).fixed() == 61);
}

TEST_CASE("as many fillers as a length holds") {
  const Passkey passkey(small(), {});
  const int64_t fixed = passkey.fixed(), filler = passkey.filler();
  CHECK(passkey.fillers(0) == 0);
  CHECK(passkey.fillers(fixed) == 0);
  CHECK(passkey.fillers(fixed + filler - 1) == 0);
  CHECK(passkey.fillers(fixed + filler) == 1);
  CHECK(passkey.fillers(fixed + 100 * filler + 1) == 100);
  const std::string said = error_of(ExitCode::config, [&] { passkey.fillers(fixed - 1); });
  CHECK(contains(said, std::to_string(fixed) + " tokens"));
  CHECK(contains(said, "found " + std::to_string(fixed - 1)));
}

TEST_CASE("places of the published prompts lie from before all fillers to behind all") {
  CHECK(passkey_place(100, 0, 20) == 0);
  CHECK(passkey_place(100, 1, 20) == 5);
  CHECK(passkey_place(100, 10, 20) == 52);
  CHECK(passkey_place(100, 19, 20) == 100);
  CHECK(passkey_place(0, 7, 20) == 0);
  CHECK(passkey_place(3, 6, 20) == 0);
  CHECK(passkey_place(3, 7, 20) == 1);
}

TEST_CASE("a thousand passkeys are found by their text, where they were put") {
  const Passkey passkey(small(), {});
  const Rng stream(3, "test");
  const std::regex form(
      "There is an important info .*? information there\\."
      "((?:The grass is green\\. .*? back again\\.)*)"
      "The pass key is (\\d{5})\\. Remember it\\. (\\d{5}) is the pass key\\."
      "((?:The grass is green\\. .*? back again\\.)*)"
      "What is the pass key\\? The pass key is");
  std::vector<int> places(5), firsts(10), lasts(10);
  for (int64_t i = 0; i < 1000; ++i) {
    Draws draws(stream, i);
    const PasskeyPrompt p = passkey.draw(4, &draws);
    const std::string text = small().decode(p.prompt);
    std::smatch found;
    REQUIRE(std::regex_match(text, found, form));
    const std::string filler =
        "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";
    CHECK(found.length(1) == p.before * std::ssize(filler));
    CHECK(found.length(4) == (4 - p.before) * std::ssize(filler));
    CHECK(found.str(2) == p.key);
    CHECK(found.str(3) == p.key);
    CHECK(small().decode(p.answer) == " " + p.key);
    CHECK(std::ssize(p.prompt) == passkey.fixed() + 4 * passkey.filler());
    ++places.at(static_cast<size_t>(p.before));
    ++firsts.at(static_cast<size_t>(p.key.front() - '0'));
    ++lasts.at(static_cast<size_t>(p.key.back() - '0'));
  }
  const auto chi_squared = [](const std::vector<int>& counts, size_t from) {
    const double expected = 1000.0 / static_cast<double>(counts.size() - from);
    double sum = 0;
    for (size_t i = from; i < counts.size(); ++i) {
      sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
  };
  CHECK(firsts[0] == 0);
  CHECK(chi_squared(places, 0) < 18.5);  // 4 degrees of freedom: exceeded with probability 0.001
  CHECK(chi_squared(firsts, 1) < 26.2);  // 8
  CHECK(chi_squared(lasts, 0) < 27.9);   // 9
}

TEST_CASE("keys of few digits are all of theirs") {
  const Passkey passkey(small(), {1, 0, PasskeyQuestion::published});
  const Rng stream(3, "test");
  std::set<std::string> keys;
  for (int64_t i = 0; i < 300; ++i) {
    Draws draws(stream, i);
    keys.insert(passkey.draw_key(&draws));
  }
  CHECK(keys == std::set<std::string>{"1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

TEST_CASE("of every tokenizer that is taken, a key's digits are pieces of their own") {
  int taken = 0;
  for (const char* name :
       {"digits.json", "gpt2.json", "neox.json", "prefix_space.json", "qwen.json", "tekken.json"}) {
    INFO(name);
    const Tokenizer t = Tokenizer::open(golden_path(name));
    std::optional<Passkey> passkey;
    try {
      passkey.emplace(t, PasskeyOptions{});
    } catch (const Error&) {
      continue;
    }
    ++taken;
    const Symbols answer = passkey->prompt("90217", 1, 0).answer;
    REQUIRE(answer.size() == 6);
    std::string digits;
    for (size_t i = 1; i < 6; ++i) {
      CHECK(t.bytes(answer[i], false).size() == 1);
      digits += t.bytes(answer[i], false);
    }
    CHECK(digits == "90217");
  }
  CHECK(taken >= 2);
}

TEST_CASE("a tokenizer that joins digits is refused") {
  const Tokenizer gpt2 = Tokenizer::open(golden_path("gpt2.json"));
  const std::string said = error_of(ExitCode::config, [&] { Passkey(gpt2, {}); });
  CHECK(contains(said, "{tokenizer}: "));
  CHECK(contains(said, "one for each digit"));
  const std::string published = shared_data("tokenizer/tiktoken/cl100k_base.tiktoken");
  if (published.empty()) return;
  const Tokenizer cl100k = Tokenizer::open(published);
  CHECK(contains(error_of(ExitCode::config, [&] { Passkey(cl100k, {}); }), "each digit"));
}

}  // namespace
}  // namespace bamtrain

#include "prompts/prompt_set.h"

#include "catch.h"
#include "data/files.h"
#include "prompts/support.h"

namespace bamtrain {
namespace {

using namespace testing;

/// `size` times three bytes, after up to `spread` random ones; 5 are generated.
PromptMaker maker(int64_t spread = 0) {
  return [spread](int64_t size, Draws* draws) {
    TextPrompt p;
    p.tokens_to_generate = 5;
    p.text = std::string(static_cast<size_t>(draws->between(0, spread)), '.');
    for (int64_t i = 0; i < size; ++i) p.text += "abc";
    return p;
  };
}

PromptSet set(int64_t length, HaystackSizes sizes = {.least = 2}, int64_t spread = 0) {
  return PromptSet("t", sizes, length, 1, bytes, maker(spread));
}

TEST_CASE("the largest size that fits is found") {
  for (int64_t length = 11; length < 200; ++length) {
    INFO(length);
    const PromptSet prompts = set(length);
    CHECK(prompts.size() == (length - 5) / 3);
    CHECK(bytes(prompts.prompt(0).text) == (length - 5) / 3 * 3);
  }
  int64_t counted = 0;
  const PromptSet far(
      "t", {.least = 2}, 1000000, 1,
      [&](const std::string& text) {
        ++counted;
        return bytes(text);
      },
      maker());
  CHECK(far.size() == 333331);
  // The minimum, 19 to exceed it, 18 back; two for each of the other 7, which have the same length.
  CHECK(counted == 38 + 7 * 2);
}

TEST_CASE("a prompt that comes out longer has a smaller haystack, and still fills the length") {
  const PromptSet prompts = set(500, {.least = 2}, 60);
  int smaller = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const std::string text = prompts.prompt(i).text;
    const int64_t tokens = bytes(text) + 5;
    CHECK(tokens <= 500);
    CHECK(tokens > 500 - 60 - 12);
    smaller += std::count(text.begin(), text.end(), 'a') < prompts.size();
  }
  CHECK(smaller > 20);
  CHECK(smaller < 200);
}

TEST_CASE("a length that some of the prompts do not fit in is refused before they are asked for") {
  // The smallest have 11 to 71 tokens; the eight used to search for a size have up to 67.
  const PromptSet tight = set(67, {.least = 2}, 60), roomy = set(71, {.least = 2}, 60);
  CHECK(contains(error_of(ExitCode::config, [&] { tight.require_room(0, 100); }),
                 "{length}: expected at least "));
  roomy.require_room(0, 100);
  for (int64_t i = 0; i < 100; ++i) CHECK(bytes(roomy.prompt(i).text) + 5 <= 71);
}

TEST_CASE("lengths that no prompt has are refused") {
  CHECK(contains(error_of(ExitCode::config, [] { set(10); }), "{length}: expected at least 11"));
  CHECK(contains(error_of(ExitCode::config, [] { set(50, {.least = 2, .most = 15}); }),
                 "{length}: expected at most about 50"));
  CHECK(set(49, {.least = 2, .most = 15}).size() == 14);
}

TEST_CASE("a prompt is a function of seed, task, length and index, in any order") {
  const auto text = [](const std::string& task, int64_t length, uint64_t seed, int64_t index) {
    return PromptSet(task, {.least = 2}, length, seed, bytes, maker(500)).prompt(index);
  };
  const PromptSet prompts = set(2000, {.least = 2}, 500);
  const std::string seventh = prompts.prompt(7).text;
  CHECK(prompts.prompt(3).text != seventh);
  CHECK(prompts.prompt(7).text == seventh);
  CHECK(text("t", 2000, 1, 7).text == seventh);
  CHECK(text("u", 2000, 1, 7).text != seventh);
  CHECK(text("t", 2000, 2, 7).text != seventh);
}

}  // namespace
}  // namespace bamtrain

#include "prompts/common_words.h"

#include <set>

#include "data/files.h"
#include "prompts/support.h"
#include "prompts/words.h"

namespace bamtrain {
namespace {

using namespace testing;

const std::string kListBegin =
    "Below is a numbered list of words. In these words, some appear more often than others. "
    "Memorize the ones that appear most often.\n";
const std::string kListQuestion =
    "\nQuestion: What are the 10 most common words in the above list? Answer: The top 10 words "
    "that "
    "appear most often in the list are:";

/// The words of "1. a 2. b". Checks the numbering.
std::vector<std::string> listed(const std::string& text) {
  const auto parts = split(text, " ");
  std::vector<std::string> all;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    REQUIRE(parts[i] == std::to_string(i / 2 + 1) + ".");
    all.push_back(parts[i + 1]);
  }
  REQUIRE(parts.size() == 2 * all.size());
  return all;
}

/// The words, by how often they appear.
std::map<int64_t, std::vector<std::string>> by_times(const std::vector<std::string>& all) {
  std::map<std::string, int64_t> counts;
  for (const std::string& word : all) ++counts[word];
  std::map<int64_t, std::vector<std::string>> times;
  for (const auto& [word, n] : counts) times[n].push_back(word);
  return times;
}

/// A parsed prompt: the lists, and the example's answer.
struct ListReading {
  std::vector<std::string> example, answer, list;
};

ListReading read_lists(const std::string& text) {
  const size_t second = text.find("\n" + kListBegin);
  REQUIRE(second != std::string::npos);
  const std::string example = text.substr(0, second), rest = text.substr(second + 1);
  REQUIRE(example.starts_with(kListBegin));
  REQUIRE(rest.starts_with(kListBegin));
  REQUIRE(rest.ends_with(kListQuestion));
  const size_t answer = example.find(kListQuestion + " ");
  REQUIRE(answer != std::string::npos);
  return {listed(between(example, kListBegin, kListQuestion)),
          listed(example.substr(answer + kListQuestion.size() + 1)),
          listed(between(rest, kListBegin, kListQuestion))};
}

void check_thousand(int64_t length, const TokenCount& count, int64_t of_example,
                    std::pair<int64_t, int64_t> in_example, std::pair<int64_t, int64_t> in_list) {
  const PromptSet prompts = common_words_prompts(length, 1, count);
  std::vector<int64_t> places(10);  // of the first reference, in tenths of the list
  for (int64_t i = 0; i < 1000; ++i) {
    const TextPrompt p = prompts.prompt(i);
    const ListReading r = read_lists(p.text);
    const auto example = by_times(r.example), list = by_times(r.list);
    REQUIRE(example.size() == 2);
    CHECK(sorted(r.answer) == example.at(in_example.first));
    CHECK(r.answer.size() == 10);
    CHECK(std::ssize(example.at(in_example.second)) == of_example - 10);
    REQUIRE(list.size() == 2);
    CHECK(sorted(p.outputs) == list.at(in_list.first));
    CHECK(p.outputs.size() == 10);
    CHECK(std::ssize(list.at(in_list.second)) >= 1);
    CHECK(p.tokens_to_generate == 120);
    CHECK(count(p.text) + 120 <= length);
    // Ten words are repeated. If they are short, so is the list, whose words were counted once.
    CHECK(count(p.text) + 120 > length - length / 25);
    for (size_t n = 0; n < r.list.size(); ++n) {
      if (r.list[n] == p.outputs[0]) ++places[n * 10 / r.list.size()];
    }
  }
  CHECK(is_uniform(places));
}

TEST_CASE("a thousand lists have ten common words") {
  // Two bytes per token, as numbers and words have about four.
  const TokenCount count = [](const std::string& text) { return bytes(text) / 2; };
  check_thousand(4095, count, 20, {3, 1}, {6, 1});
  check_thousand(4096, count, 40, {10, 3}, {30, 3});
}

TEST_CASE("a short list of words is RULER's, byte for byte") {
  const TextPrompt p =
      common_words_prompts(2100, 1, [](const std::string& text) { return bytes(text); }).prompt(0);
  CHECK(p.text ==
        "Below is a numbered list of words. In these words, some appear more often than "
        "others. Memorize the ones that appear most often.\n"
        "1. muffin 2. wary 3. match 4. candy 5. banana 6. fan 7. wary 8. lightning 9. banana "
        "10. hen 11. crow 12. lawful 13. mutual 14. crow 15. lawful 16. holiday 17. fan 18. "
        "wind 19. wind 20. holiday 21. mist 22. wind 23. exact 24. mutual 25. holiday 26. "
        "lawful 27. windy 28. wary 29. fan 30. banana 31. muffin 32. crow 33. movie 34. "
        "playful 35. movie 36. movie 37. muffin 38. peanut 39. mutual 40. legal\n"
        "Question: What are the 10 most common words in the above list? Answer: The top 10 "
        "words that appear most often in the list are: 1. wind 2. lawful 3. holiday 4. fan 5."
        " banana 6. mutual 7. movie 8. wary 9. muffin 10. crow\n"
        "Below is a numbered list of words. In these words, some appear more often than "
        "others. Memorize the ones that appear most often.\n"
        "1. paper 2. wallet 3. youthful 4. drowsy 5. gloomy 6. bald 7. shabby 8. thirsty 9. "
        "ripe 10. current 11. evening 12. wise 13. brush 14. creative 15. wise 16. cougar 17."
        " border 18. icy 19. pine 20. flame 21. cougar 22. proud 23. creative 24. robot 25. "
        "wise 26. thirsty 27. thirsty 28. proud 29. creative 30. humble 31. icy 32. youthful "
        "33. wise 34. wise 35. bearded 36. icy 37. canal 38. organic 39. bearded 40. wing 41."
        " icy 42. proud 43. shabby 44. shabby 45. thirsty 46. current 47. proud 48. thirsty "
        "49. shabby 50. shabby 51. rake 52. plot 53. weary 54. jealous 55. creative 56. "
        "cougar 57. mail 58. youthful 59. proud 60. creative 61. youthful 62. shabby 63. "
        "proud 64. youthful 65. bearded 66. youthful 67. icy 68. tough 69. wise 70. bearded "
        "71. cougar 72. meteor 73. current 74. shrill 75. bearded 76. alphabet 77. icy 78. "
        "current 79. sword 80. cider 81. current 82. helmet 83. step 84. museum 85. bearded "
        "86. cougar 87. cougar 88. creative 89. thirsty 90. current\n"
        "Question: What are the 10 most common words in the above list? Answer: The top 10 "
        "words that appear most often in the list are:");
  CHECK(p.outputs == std::vector<std::string>{"youthful", "shabby", "bearded", "creative",
                                              "current", "thirsty", "icy", "cougar", "wise",
                                              "proud"});
}

TEST_CASE("lists end where there are no more words") {
  const TokenCount count = [](const std::string& text) { return bytes(text) / 2; };
  const std::string said =
      error_of(ExitCode::config, [&] { common_words_prompts(131072, 1, count); });
  CHECK(contains(said, "common_words has no words for more"));
}

}  // namespace
}  // namespace bamtrain

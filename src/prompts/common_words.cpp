#include "prompts/common_words.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "prompts/drawn_text.h"
#include "prompts/words.h"

namespace bamtrain {

namespace {

constexpr int64_t kCommon = 10, kCommonWordsTokens = 120;
constexpr int64_t kLong = 4096;  // from this length on words are repeated more often

/// Number of words in a list, and repeats of common and other words.
struct Repeats {
  int64_t words, common, others;
};

struct WordList {
  std::string question;
  std::vector<std::string> common;
};

std::string numbered(const std::vector<std::string>& all) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("{}{}. {}", i == 0 ? "" : " ", i + 1, all[i]);
  }
  return text;
}

WordList draw_list(const Repeats& repeats, Draws* draws) {
  WordList list;
  std::vector<std::string> all;
  for (const int64_t n : draws->choose(repeats.words, std::ssize(words()))) {
    const std::string& word = words()[static_cast<size_t>(n)];
    const bool common = std::ssize(list.common) < kCommon;
    if (common) list.common.push_back(word);
    all.insert(all.end(), static_cast<size_t>(common ? repeats.common : repeats.others), word);
  }
  shuffle(&all, draws);
  list.question = fmt::format(
      "Below is a numbered list of words. In these words, some appear more often than others. "
      "Memorize the ones that appear most often.\n{}\nQuestion: What are the {} most common words "
      "in the above list? Answer: The top {} words that appear most often in the list are:",
      numbered(all), kCommon, kCommon);
  return list;
}

}  // namespace

PromptSet common_words_prompts(int64_t length, uint64_t seed, const TokenCount& count) {
  const bool is_long = length >= kLong;
  const auto make = [is_long](int64_t size, Draws* draws) {
    const WordList example = draw_list(is_long ? Repeats{40, 10, 3} : Repeats{20, 3, 1}, draws);
    WordList list = draw_list({kCommon + size, is_long ? 30 : 6, is_long ? 3 : 1}, draws);
    TextPrompt p;
    p.text = fmt::format("{} {}\n{}", example.question, numbered(example.common), list.question);
    p.outputs = std::move(list.common);
    p.tokens_to_generate = kCommonWordsTokens;
    return p;
  };
  return PromptSet("common_words", {.least = 1, .most = std::ssize(words()) - kCommon}, length,
                   seed, count, make);
}

}  // namespace bamtrain

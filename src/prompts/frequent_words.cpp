#include "prompts/frequent_words.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "prompts/drawn_text.h"

namespace bamtrain {

namespace {

constexpr int64_t kWordLetters = 6, kAsked = 3, kFrequentWordsTokens = 50;
constexpr const char* kFrequentWordsBefore =
    "Read the following coded text and track the frequency of each coded word. Find the three most "
    "frequently appeared coded words. ";
constexpr const char* kAfter =
    "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three "
    "most frequently appeared words in the above coded text? Answer: According to the coded text "
    "above, the three most frequently appeared words are:";
/// Smallest N at which the fourth word appears more often than the fifth: N (1/16 - 1/25) / zeta(2)
/// >= 1.
constexpr int64_t kLeast = 74;

/// Count of the word of that rank, from 1, for a text of size N.
int64_t times(int64_t N, int64_t rank) {
  constexpr double kZeta2 = std::numbers::pi * std::numbers::pi / 6;
  const auto k = static_cast<double>(rank);
  return static_cast<int64_t>(std::floor(static_cast<double>(N) / (k * k) / kZeta2));
}

TextPrompt make_frequent_words_prompt(int64_t ranks, int64_t N, Draws* draws) {
  auto coded = draw_different(ranks, {}, [&] { return draw_letters(kWordLetters, 'a', draws); });
  coded[0] = "...";
  std::vector<std::string> all;
  for (int64_t rank = 1; rank <= ranks; ++rank) {
    all.insert(all.end(), static_cast<size_t>(times(N, rank)),
               coded[static_cast<size_t>(rank - 1)]);
  }
  shuffle(&all, draws);
  TextPrompt p;
  p.text = kFrequentWordsBefore;
  for (size_t i = 0; i < all.size(); ++i) p.text += (i == 0 ? "" : " ") + all[i];
  p.text += kAfter;
  p.outputs.assign(coded.begin() + 1, coded.begin() + 1 + kAsked);
  p.tokens_to_generate = kFrequentWordsTokens;
  return p;
}

}  // namespace

PromptSet frequent_words_prompts(int64_t length, uint64_t seed, const TokenCount& count) {
  constexpr int64_t kPerWord = 50;
  // Dots, the requested words and at least one other word.
  const int64_t ranks = std::max<int64_t>(kAsked + 2, (length - kFrequentWordsTokens) / kPerWord);
  return PromptSet(
      "frequent_words", {.least = kLeast}, length, seed, count,
      [ranks](int64_t N, Draws* draws) { return make_frequent_words_prompt(ranks, N, draws); });
}

}  // namespace bamtrain

#include "prompts/frequent_words.h"

#include <cmath>

#include "data/files.h"
#include "prompts/support.h"

namespace bamtrain {
namespace {

using namespace testing;

const std::string kCodedBegin =
    "Read the following coded text and track the frequency of each coded word. Find the three most "
    "frequently appeared coded words. ";
const std::string kCodedQuestion =
    "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three "
    "most frequently appeared words in the above coded text? Answer: According to the coded text "
    "above, the three most frequently appeared words are:";

TEST_CASE("a thousand coded texts have three most frequent words") {
  const TokenCount count = [](const std::string& text) { return bytes(text) / 2; };
  for (const int64_t length : {900, 4000}) {
    INFO(length);
    const PromptSet prompts = frequent_words_prompts(length, 1, count);
    std::vector<int64_t> letters(26), places(10);
    for (int64_t i = 0; i < 1000; ++i) {
      const TextPrompt p = prompts.prompt(i);
      REQUIRE(p.text.starts_with(kCodedBegin));
      REQUIRE(p.text.ends_with(kCodedQuestion));
      const auto all = split(between(p.text, kCodedBegin, kCodedQuestion), " ");
      std::map<std::string, int64_t> counts;
      const size_t tenth = all.size() / 10;
      for (size_t n = 0; n < all.size(); ++n) {
        ++counts[all[n]];
        if (all[n] == "..." && n < 10 * tenth) ++places[n / tenth];
      }
      // Sorted by how often they appear; the law's counts, for ranks that appear at all.
      std::vector<std::pair<int64_t, std::string>> ranks;
      for (const auto& [word, times] : counts) ranks.emplace_back(-times, word);
      std::sort(ranks.begin(), ranks.end());
      REQUIRE(ranks.size() >= 5);
      CHECK(ranks[0].second == "...");
      for (size_t k = 0; k < 3; ++k) {
        CHECK(p.outputs.at(k) == ranks[k + 1].second);
        CHECK(ranks[k].first < ranks[k + 1].first);
      }
      CHECK(ranks[3].first < ranks[4].first);
      CHECK(p.outputs.size() == 3);
      const auto N = static_cast<double>(prompts.size());
      int64_t appearing = 0;
      for (int64_t k = 1; k <= std::max<int64_t>(5, (length - 50) / 50); ++k) {
        const auto times =
            static_cast<int64_t>(N / static_cast<double>(k * k) / 1.6449340668482264);
        appearing += times > 0;
        if (times > 0) CHECK(-ranks.at(static_cast<size_t>(k - 1)).first == times);
      }
      CHECK(std::ssize(ranks) == appearing);
      for (const auto& [word, times] : counts) {
        if (word == "...") continue;
        CHECK(word.size() == 6);
        for (const char c : word) ++letters.at(static_cast<size_t>(c - 'a'));
      }
      CHECK(p.tokens_to_generate == 50);
      CHECK(count(p.text) + 50 <= length);
      CHECK(count(p.text) + 50 > length - 40);
    }
    CHECK(is_uniform(letters));
    CHECK(is_uniform(places));
  }
}

TEST_CASE("a short coded text is RULER's, byte for byte") {
  const TextPrompt p = frequent_words_prompts(800, 1, bytes).prompt(0);
  CHECK(p.text ==
        "Read the following coded text and track the frequency of each coded word. Find the "
        "three most frequently appeared coded words. ... cpbnan cpbnan ... ... ... ... nmbmkl"
        " ... ... nmbmkl cpbnan nmbmkl ... ... ... ... nmbmkl izljda ... ... ... nmbmkl ... "
        "... ... ... ... ... uuxtri ... ... nmbmkl ... ... ... nmbmkl ... ... ... scprhf "
        "nmbmkl ... ... nmbmkl ... ... uuxtri nmbmkl ... cpbnan ... ogffrl ... ... ... ... "
        "... ... ... cpbnan izljda ... ... ... nmbmkl ... ... ... ... ... ... nmbmkl ... "
        "nmbmkl ... ... izljda\n"
        "Question: Do not provide any explanation. Please ignore the dots '....'. What are "
        "the three most frequently appeared words in the above coded text? Answer: According "
        "to the coded text above, the three most frequently appeared words are:");
  CHECK(p.outputs == std::vector<std::string>{"nmbmkl", "cpbnan", "izljda"});
}

}  // namespace
}  // namespace bamtrain

#include "prompts/words.h"

#include <algorithm>
#include <set>

#include "catch.h"

namespace bamtrain {
namespace {

TEST_CASE("words are different, of lower-case letters alone, and many") {
  CHECK(adjectives().size() > 500);
  CHECK(nouns().size() > 1000);
  CHECK(words().size() == adjectives().size() + nouns().size());
  CHECK(std::set<std::string>(words().begin(), words().end()).size() == words().size());
  for (const std::string& word : words()) {
    INFO(word);
    CHECK(!word.empty());
    CHECK(std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; }));
  }
}

}  // namespace
}  // namespace bamtrain

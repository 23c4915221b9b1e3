#include "prompts/sentences.h"

#include <algorithm>
#include <string>

#include "catch.h"
#include "core/join.h"
#include "data/files.h"
#include "prompts/haystack.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using Sentences = std::vector<std::string>;

TEST_CASE("sentences end where the rule says") {
  CHECK(sentences_of("").empty());
  CHECK(sentences_of("No end") == Sentences{"No end"});
  CHECK(sentences_of("One. Two! Three? Four.") == Sentences{"One.", "Two!", "Three?", "Four."});
  CHECK(sentences_of("It costs 3.5 dollars. 4 of them do.") ==
        Sentences{"It costs 3.5 dollars.", "4 of them do."});
  CHECK(sentences_of("Mr. Smith met J. R. Jones, e.g. Twice. etc. And so on.") ==
        Sentences{"Mr. Smith met J. R. Jones, e.g. Twice. etc. And so on."});
  CHECK(sentences_of("He said \"Go.\" She went. (Nobody saw (Mrs. X).) Why?") ==
        Sentences{"He said \"Go.\"", "She went.", "(Nobody saw (Mrs. X).)", "Why?"});
  CHECK(sentences_of("\u201cYes.\u201d \u201cNo.\u201d end") ==
        Sentences{"\u201cYes.\u201d", "\u201cNo.\u201d end"});
  CHECK(sentences_of("so... and then... Then.") == Sentences{"so... and then...", "Then."});
}

TEST_CASE("a text is its sentences, joined by spaces") {
  const std::string path = testing::shared_data("wikitext-2/valid.txt");
  if (path.empty()) return;
  const HaystackText text = HaystackText::read(path);
  const std::string first = text.first(50000);
  const Sentences sentences = sentences_of(first);
  CHECK(join(sentences, " ") == first);
  CHECK(sentences.size() > 1000);
  CHECK(sentences.size() < 5000);
}

}  // namespace
}  // namespace bamtrain

#include "prompts/drawn_text.h"

#include <algorithm>
#include <regex>
#include <set>

#include "catch.h"
#include "prompts/support.h"
#include "prompts/words.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("numbers, words and uuids have the form of their kind, all of it as likely") {
  const Rng stream(5, "test");
  Draws draws(stream, 0);
  std::vector<int64_t> first(9), last(10), variant(4), hex(16);
  std::set<std::string> adjectives_seen, nouns_seen;
  const std::regex number("[1-9][0-9]{6}"), word("([a-z]+)-([a-z]+)"),
      uuid("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  for (int i = 0; i < 20000; ++i) {
    const std::string n = draw_text(DrawnKind::numbers, &draws);
    REQUIRE(std::regex_match(n, number));
    ++first[static_cast<size_t>(n.front() - '1')];
    ++last[static_cast<size_t>(n.back() - '0')];
    std::smatch parts;
    const std::string w = draw_text(DrawnKind::words, &draws);
    REQUIRE(std::regex_match(w, parts, word));
    adjectives_seen.insert(parts[1]);
    nouns_seen.insert(parts[2]);
    const std::string u = draw_text(DrawnKind::uuids, &draws);
    REQUIRE(std::regex_match(u, uuid));
    ++variant[std::string("89ab").find(u[19])];
    for (const size_t place : {0, 7, 9, 15, 20, 24, 35}) {
      ++hex[std::string("0123456789abcdef").find(u[place])];
    }
  }
  CHECK(is_uniform(first));
  CHECK(is_uniform(last));
  CHECK(is_uniform(variant));
  CHECK(is_uniform(hex));
  // Each of 1,137 nouns is missing with a probability of 2e-8.
  CHECK(adjectives_seen == std::set<std::string>(adjectives().begin(), adjectives().end()));
  CHECK(nouns_seen == std::set<std::string>(nouns().begin(), nouns().end()));
}

TEST_CASE("letters are any of 26") {
  const Rng stream(5, "test");
  Draws draws(stream, 0);
  std::vector<int64_t> counts(26);
  for (const char c : draw_letters(20000, 'A', &draws)) ++counts.at(static_cast<size_t>(c - 'A'));
  CHECK(is_uniform(counts));
}

TEST_CASE("texts that must differ do, from each other and from others") {
  int next = 0;
  const auto draw = [&] { return std::to_string(next++ / 2); };  // each twice
  CHECK(draw_different(3, {"1"}, draw) == std::vector<std::string>{"0", "2", "3"});
}

TEST_CASE("every order is as likely") {
  const Rng stream(5, "test");
  std::map<std::string, int64_t> orders;
  for (int64_t i = 0; i < 12000; ++i) {
    Draws draws(stream, i);
    std::vector<std::string> texts = {"a", "b", "c", "d"};
    shuffle(&texts, &draws);
    ++orders[texts[0] + texts[1] + texts[2] + texts[3]];
  }
  std::vector<int64_t> counts;
  for (const auto& [order, n] : orders) counts.push_back(n);
  CHECK(counts.size() == 24);
  CHECK(is_uniform(counts));
}

}  // namespace
}  // namespace bamtrain

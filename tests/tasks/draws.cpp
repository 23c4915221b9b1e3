#include "tasks/draws.h"

#include <algorithm>
#include <map>
#include <set>

#include "catch.h"

namespace bamtrain {
namespace {

TEST_CASE("a sequence's numbers are its own, whatever was drawn before") {
  const Rng stream(7, "s");
  Draws first(stream, 5), other(stream, 6), again(stream, 5);
  std::vector<int64_t> a, b, c;
  for (int i = 0; i < 100; ++i) a.push_back(first.below(1000));
  for (int i = 0; i < 100; ++i) b.push_back(other.below(1000));
  for (int i = 0; i < 100; ++i) c.push_back(again.below(1000));
  CHECK(a == c);
  CHECK(a != b);
  for (int i = 0; i < 100; ++i) {  // the stream from 5 * 2^kBits on
    const auto at = (uint64_t{5} << Draws::kBits) + static_cast<uint64_t>(i);
    CHECK(a[static_cast<size_t>(i)] == static_cast<int64_t>(stream.below(at, 1000)));
  }
}

TEST_CASE("numbers and symbols lie between their limits, and reach both") {
  const Rng stream(7, "s");
  Draws draws(stream, 0);
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(draws.between(-2, 3));
  CHECK(seen == std::set<int64_t>{-2, -1, 0, 1, 2, 3});
  const Symbols ids = draws.symbols(300, 4, 6);
  CHECK(ids.size() == 300);
  CHECK(std::set<int32_t>(ids.begin(), ids.end()) == std::set<int32_t>{4, 5, 6});
  CHECK(draws.below(1) == 0);
  CHECK_FALSE(draws.chance(0));
  CHECK(draws.chance(1));
}

TEST_CASE("a choice has different numbers, and every ordered one is as likely") {
  const Rng stream(11, "s");
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kTimes = 12'000;
  for (int i = 0; i < kTimes; ++i) {
    Draws draws(stream, i);
    ++counts[draws.choose(2, 4)];
  }
  CHECK(counts.size() == 12);  // ordered pairs from four
  for (const auto& [pair, n] : counts) {
    CHECK(pair[0] != pair[1]);
    CHECK(std::abs(n - 1000) < 150);  // five standard deviations
  }
  Draws draws(stream, 0);
  std::vector<int64_t> all = draws.choose(50, 50);
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 50; ++i) CHECK(all[static_cast<size_t>(i)] == i);
  CHECK(draws.choose(0, 3).empty());
}

}  // namespace
}  // namespace bamtrain

#include "core/permutation.h"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "catch.h"

namespace bamtrain {
namespace {

TEST_CASE("a permutation visits every position once") {
  for (int64_t n : {1, 2, 3, 4, 5, 1000, 4096, 4097}) {
    for (int64_t epoch : {0, 1, 12345}) {
      INFO(n << " " << epoch);
      const Permutation order(n, 42, epoch);
      std::vector<bool> seen(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t x = order(i);
        REQUIRE((x >= 0 && x < n));
        REQUIRE_FALSE(seen[static_cast<size_t>(x)]);
        seen[static_cast<size_t>(x)] = true;
      }
    }
  }
  const int64_t huge = (int64_t{1} << 61) + 12345;
  const Permutation order(huge, 42, 0);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t x = order(huge - 1 - i);
    CHECK((x >= 0 && x < huge));
    seen.insert(x);
  }
  CHECK(seen.size() == 1000);
}

TEST_CASE("the permutation is the documented one") {
  // Computed by a separate Python program: Philox 4x32-10 with the paper's constants, in 8 Feistel
  // rounds. A change here changes the data order of every resumed run.
  const auto start = [](int64_t n, uint64_t seed, int64_t epoch, int64_t count) {
    const Permutation order(n, seed, epoch);
    std::vector<int64_t> v;
    for (int64_t i = 0; i < count; ++i) v.push_back(order(i));
    return v;
  };
  CHECK(start(1000, 7, 0, 8) == std::vector<int64_t>{411, 445, 876, 880, 944, 482, 502, 369});
  CHECK(start(1000, 7, 3, 8) == std::vector<int64_t>{417, 731, 441, 203, 764, 410, 785, 870});
  CHECK(start(5, uint64_t{1} << 40, 1, 5) == std::vector<int64_t>{1, 2, 4, 3, 0});
}

TEST_CASE("over seeds every order of three things is about as frequent") {
  std::map<std::vector<int64_t>, int> count;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    const Permutation order(3, seed, 0);
    ++count[{order(0), order(1), order(2)}];
  }
  REQUIRE(count.size() == 6);
  for (const auto& entry : count) {
    CHECK(entry.second > 1000 - 5 * 29);  // five standard deviations
    CHECK(entry.second < 1000 + 5 * 29);
  }
}

}  // namespace
}  // namespace bamtrain

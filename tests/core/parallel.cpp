#include "core/parallel.h"

#include <stdexcept>
#include <vector>

#include "catch.h"

using namespace bamtrain;

TEST_CASE("every piece runs once") {
  std::vector<int> seen(1003, 0);
  parallel_ranges(1003, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (int n : seen) REQUIRE(n == 1);
  parallel_for(0, [](int64_t) { throw std::logic_error("no piece to run"); });
}

TEST_CASE("an exception in a piece reaches the caller") {
  REQUIRE_THROWS_AS(parallel_for(8,
                                 [](int64_t i) {
                                   if (i == 5) throw std::runtime_error("piece 5");
                                 }),
                    std::runtime_error);
}

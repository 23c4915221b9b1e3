#include "tasks/score.h"

#include <vector>

#include "catch.h"

namespace bamtrain {
namespace {

Score of(const std::vector<int32_t>& targets, const std::vector<int32_t>& answers,
         int32_t terminator = kIgnoreIndex) {
  return score(targets, answers, terminator);
}

TEST_CASE("places without a target are passed over") {
  const Score s = of({kIgnoreIndex, 3, 4, kIgnoreIndex, 5}, {9, 3, 0, 9, 5});
  CHECK(s.compared == 3);
  CHECK(s.right == 2);
  CHECK_FALSE(s.exact());
  CHECK(of({kIgnoreIndex, 3}, {1, 3}).exact());
}

TEST_CASE("places behind the first terminator are not compared") {
  // The target after the first terminator is padding.
  const Score s = of({kIgnoreIndex, 1, 2, 0, 2}, {7, 1, 2, 1, 1}, 2);
  CHECK(s.compared == 2);
  CHECK(s.exact());
  CHECK_FALSE(of({1, 2, 0}, {1, 0, 0}, 2).exact());
  CHECK(of({1, 0, 1}, {1, 0, 0}, 2).compared == 3);  // the terminator never comes
}

}  // namespace
}  // namespace bamtrain

// BLEU, compared with examples worked out by hand.

#include "eval/bleu.h"

#include <cmath>
#include <vector>

#include "catch.h"

using namespace bamtrain;
using Ids = std::vector<int32_t>;

TEST_CASE("an equal text has 1, a text without a common word 0") {
  BleuCounts same, other;
  same.add(Ids{1, 2, 3, 4, 5}, Ids{1, 2, 3, 4, 5});
  CHECK(same.score() == 1);
  other.add(Ids{6, 7, 8, 9, 10}, Ids{1, 2, 3, 4, 5});
  CHECK(other.score() == 0);
  CHECK(BleuCounts().score() == 0);
}

TEST_CASE("n-grams count as often as the reference has them") {
  // Papineni's example: "the the the the the the the" against "the cat is on the mat".
  BleuCounts c;
  c.add(Ids{1, 1, 1, 1, 1, 1, 1}, Ids{1, 2, 3, 4, 1, 5});
  CHECK(c.matched[0] == 2);
  CHECK(c.written[0] == 7);
  CHECK(c.matched[1] == 0);
  CHECK(c.score() == 0);
}

TEST_CASE("precisions are of the whole corpus, and short texts pay") {
  BleuCounts c;
  c.add(Ids{1, 2, 3, 4, 9}, Ids{1, 2, 3, 4, 5, 6});  // 4 of 5, 3 of 4, 2 of 3, 1 of 2
  c.add(Ids{7, 8}, Ids{7, 8, 9});                    // 2 of 2, 1 of 1
  const double precisions = 6.0 / 7 * (4.0 / 5) * (2.0 / 3) * (1.0 / 2);
  CHECK(c.score() == Approx(std::exp(1 - 9.0 / 7) * std::pow(precisions, 0.25)).epsilon(1e-14));
}

TEST_CASE("orders of which no text is long enough are left out") {
  BleuCounts c;
  c.add(Ids{1}, Ids{1});
  CHECK(c.score() == 1);
}

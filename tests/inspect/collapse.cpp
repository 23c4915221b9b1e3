// The collapse probe, compared with an independent recursion and with the paper's statements.

#include "inspect/collapse.h"

#include <algorithm>
#include <cmath>

#include "catch.h"

namespace bamtrain {
namespace {

TEST_CASE("with softmax and a constant prefix the gap is that of three numbers' recursion") {
  // The prefix's n - 1 states c are equal and stay equal. The last token's state a sees them and
  // itself. Its repetition's state r sees them, a, and itself.
  const std::vector<CollapseGap> gaps = collapse_gaps({}, CollapsePrefix::constant);
  REQUIRE(gaps.size() == 8);
  CHECK(gaps.back().n == 16384);
  for (const CollapseGap& at : gaps) {
    const auto before = static_cast<double>(at.n - 1);
    double c = 1 / std::sqrt(1.2), a = std::sqrt(1.2), r = a;
    for (int layer = 0; layer < 6; ++layer) {
      const auto read = [&](double q, double repeated) {
        const double top = std::max({q * c, q * a, q * r});
        const double pc = before * std::exp(q * c - top), pa = std::exp(q * a - top),
                     pr = repeated * std::exp(q * r - top);
        return q + (pc * c + pa * a + pr * r) / (pc + pa + pr);
      };
      const double next_a = read(a, 0), next_r = read(r, 1);
      c = 2 * c;
      a = next_a;
      r = next_r;
    }
    INFO(at.n);
    // Sums of n terms in a different order; six layers make their logits about 1e3 times as large.
    CHECK(at.gap == Approx(std::abs(a - r)).epsilon(1e-6));
  }
  for (size_t n = 1; n < gaps.size(); ++n) CHECK(gaps[n].gap < gaps[n - 1].gap);
}

TEST_CASE("entmax keeps the gap that softmax loses") {
  const NormalizerForm entmax = {.kind = NormalizerKind::entmax, .alpha = 2};
  for (const CollapsePrefix prefix : {CollapsePrefix::constant, CollapsePrefix::random}) {
    const std::vector<CollapseGap> dense = collapse_gaps({}, prefix);
    const std::vector<CollapseGap> sparse = collapse_gaps(entmax, prefix);
    REQUIRE(dense.size() == sparse.size());
    CHECK(sparse.back().gap > dense.back().gap);
  }
}

}  // namespace
}  // namespace bamtrain

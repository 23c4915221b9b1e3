#include "ops/mechanisms/cope.h"

#include <cmath>

#include "ops/reference/autodiff.h"
#include "ops/reference/place.h"

namespace bamtrain {

using namespace reference;

namespace {

double key_gate(const LogitPlace& p, int64_t k) { return 1 / (1 + std::exp(-p.s[k - p.first])); }

/// The columns of E (D, n) between which the key's position lies, and the weight of the second.
struct Position {
  bool counts;  // the count is below the last column
  int64_t low, high;
  double share;  // weight of column `high`

  Position(const LogitPlace& p, int64_t n) {
    double sum = 0;  // gates are positive: once at the cap, the sum stays there
    for (int64_t k = p.own(); k >= p.j && sum < static_cast<double>(n - 1); --k)
      sum += key_gate(p, k);
    counts = sum < static_cast<double>(n - 1);
    const double capped = counts ? sum : static_cast<double>(n - 1);
    low = static_cast<int64_t>(std::floor(capped));
    high = counts ? low + 1 : low;
    share = capped - static_cast<double>(low);
  }
};

}  // namespace

double ContextualBias::in_reference(const LogitPlace& p) const {
  const int64_t n = positions.shape[1];
  const Position at(p, n);
  double sum = 0;
  for (int64_t c = 0; c < p.D; ++c) {
    const double* const E = f64(positions) + c * n;
    sum += p.q[c] * ((1 - at.share) * E[at.low] + at.share * E[at.high]);
  }
  return sum;
}

void ContextualBias::adjoint_in_reference(const Gradients& g, const LogitPlace& p,
                                          double db) const {
  const int64_t n = positions.shape[1];
  const Position at(p, n);
  double slope = 0;
  for (int64_t c = 0; c < p.D; ++c) {
    const double* const E = f64(positions) + c * n;
    double* const dE = f64(g.dpositions) + c * n;
    slope += p.q[c] * (E[at.high] - E[at.low]);
    p.dq[c] += db * ((1 - at.share) * E[at.low] + at.share * E[at.high]);
    dE[at.low] += db * (1 - at.share) * p.q[c];
    dE[at.high] += db * at.share * p.q[c];
  }
  if (!at.counts) return;
  for (int64_t k = p.j; k <= p.own(); ++k) {
    p.ds[k - p.first] += db * slope * key_gate(p, k) * (1 - key_gate(p, k));
  }
}

}  // namespace bamtrain

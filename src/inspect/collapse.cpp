#include "inspect/collapse.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "core/rng.h"
#include "ops/reference/normalizers.h"

namespace bamtrain {

namespace {

constexpr double kLogit = 1.2;  // logit of the last token with itself

/// A row's state after a layer. `seen`: the keys' states, its own last.
double next_state(const Attention& a, const std::vector<double>& seen) {
  std::vector<double> z;
  for (const double v : seen) z.push_back(seen.back() * v);
  const RowWeights w = reference_weights(a, 0, z);
  double sum = seen.back();
  for (size_t j = 0; j < seen.size(); ++j) sum += w.p[j] * seen[j];
  return sum;
}

/// The inputs of a normalizer besides logits, for sequences of `tokens` tokens.
Attention call_of(const NormalizerForm& form, int64_t tokens) {
  Attention a;
  a.form.normalizer = form;
  a.q.shape[1] = a.k.shape[1] = tokens;
  return a;
}

}  // namespace

std::vector<CollapseGap> collapse_gaps(const NormalizerForm& normalizer, CollapsePrefix prefix) {
  const bool constant = prefix == CollapsePrefix::constant;
  // With equal keys, the mean over keys is the key itself.
  const bool alike = constant && traits_of(normalizer.kind).sums_to_one;
  const int64_t longest = alike ? kLastCollapse : kLastOfAllRows;
  const Rng rng(0, "collapse");
  std::vector<CollapseGap> gaps;
  for (int64_t n = kFirstCollapse; n <= longest; n *= 2) gaps.push_back({n, 0});
  for (CollapseGap& at : gaps) {
    const auto n = static_cast<size_t>(at.n);
    // The sequence and then the repeated token, which the sequence does not see: it is causal.
    std::vector<double> v(n + 1, std::sqrt(kLogit));
    for (size_t i = 0; i + 1 < n; ++i) v[i] = (constant ? 1 : rng.uniform(i)) / std::sqrt(kLogit);
    for (int layer = 0; layer < kCollapseLayers; ++layer) {
      std::vector<double> next = v;
      const auto form = [&](int64_t i) {
        const auto row = static_cast<size_t>(i);
        // A normalizer that reads the number of keys gets the length of the sequence that the row
        // ends.
        next[row] = next_state(call_of(normalizer, row < n ? at.n : at.n + 1),
                               {v.begin(), v.begin() + i + 1});
      };
      if (alike) {
        for (size_t i = 0; i + 1 < n; ++i) next[i] = 2 * v[i];
        form(at.n - 1);
        form(at.n);
      } else {
        parallel_for(at.n + 1, form);
      }
      v = std::move(next);
    }
    at.gap = std::abs(v[n - 1] - v[n]);
  }
  return gaps;
}

}  // namespace bamtrain

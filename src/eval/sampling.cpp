#include "eval/sampling.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace bamtrain {

Sampler::Sampler(const Sampling& sampling, const Rng& rng) : sampling_(sampling), rng_(rng) {
  const Sampling& s = sampling;
  require(s.temperature >= 0 && std::isfinite(s.temperature) && s.top_k >= 0 && s.top_p > 0 &&
              s.top_p <= 1 && s.min_p >= 0 && s.min_p <= 1,
          "temperature, top_k, top_p and min_p in their ranges");
}

int32_t Sampler::draw(std::span<const double> logits, uint64_t index) {
  require(!logits.empty(), "a logit");
  const size_t likeliest = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) -
                                               logits.begin());  // ties: the first
  const double most = logits[likeliest];
  const bool numbers =
      std::none_of(logits.begin(), logits.end(), [](double z) { return std::isnan(z); });
  if (!numbers || !std::isfinite(most)) {
    throw Error(ExitCode::nonfinite, "logits of the next token", "numbers",
                numbers ? "infinity" : "NaN", "the model has diverged: use an earlier checkpoint");
  }
  if (sampling_.temperature == 0) return static_cast<int32_t>(likeliest);
  candidates_.clear();
  for (size_t id = 0; id < logits.size(); ++id) {
    candidates_.push_back(
        {std::exp((logits[id] - most) / sampling_.temperature), static_cast<int32_t>(id)});
  }
  keep_likeliest();
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double left = rng_.uniform(index) * total;
  for (const Candidate& c : candidates_) {
    left -= c.weight;
    if (left < 0) return c.id;
  }
  // Rounding may make the subtracted weights sum to less than the total.
  return std::find_if(candidates_.rbegin(), candidates_.rend(),
                      [](const Candidate& c) { return c.weight > 0; })
      ->id;
}

/// Applies top_k, top_p and min_p.
void Sampler::keep_likeliest() {
  if (sampling_.top_k == 0 && sampling_.top_p == 1 && sampling_.min_p == 0) return;
  const auto n = static_cast<int64_t>(candidates_.size());
  const int64_t k = sampling_.top_k > 0 ? std::min(sampling_.top_k, n) : n;
  std::partial_sort(candidates_.begin(), candidates_.begin() + k, candidates_.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return a.weight > b.weight || (a.weight == b.weight && a.id < b.id);
                    });
  candidates_.resize(static_cast<size_t>(k));
  if (sampling_.top_p < 1) {
    double total = 0, sum = 0;
    for (const Candidate& c : candidates_) total += c.weight;
    size_t kept = 0;
    while (kept < candidates_.size() && sum < sampling_.top_p * total) {
      sum += candidates_[kept++].weight;
    }
    candidates_.resize(kept);
  }
  const double least = sampling_.min_p * candidates_[0].weight;
  std::erase_if(candidates_, [least](const Candidate& c) { return c.weight < least; });
}

}  // namespace bamtrain

#include "eval/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace bamtrain {

namespace {

using Counts = std::map<std::vector<int32_t>, int64_t>;

Counts ngrams(std::span<const int32_t> text, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= text.size(); ++i) {
    const auto gram = text.subspan(i, n);
    ++counts[{gram.begin(), gram.end()}];
  }
  return counts;
}

}  // namespace

void BleuCounts::add(std::span<const int32_t> text, std::span<const int32_t> reference) {
  words += static_cast<double>(text.size());
  reference_words += static_cast<double>(reference.size());
  for (size_t n = 1; n <= kLongest; ++n) {
    const Counts own = ngrams(text, n), other = ngrams(reference, n);
    for (const auto& [gram, count] : own) {
      const auto found = other.find(gram);
      if (found != other.end()) {
        matched[n - 1] += static_cast<double>(std::min(count, found->second));
      }
      written[n - 1] += static_cast<double>(count);
    }
  }
}

double BleuCounts::score() const {
  double logarithms = 0;
  int orders = 0;
  for (size_t n = 0; n < kLongest; ++n) {
    if (written[n] == 0) continue;
    if (matched[n] == 0) return 0;
    logarithms += std::log(matched[n] / written[n]);
    ++orders;
  }
  if (orders == 0) return 0;
  const double brevity = words < reference_words ? 1 - reference_words / words : 0;
  return std::exp(logarithms / orders + brevity);
}

}  // namespace bamtrain

#include "core/holm.h"

#include <algorithm>

namespace bamtrain {

std::vector<std::optional<double>> holm(std::span<const std::optional<double>> p) {
  std::vector<size_t> order;  // of those that are present
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return *p[a] < *p[b]; });
  std::vector<std::optional<double>> out(p.size());
  double least = 0;  // the largest corrected p so far
  for (size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    least = std::max(least, std::min(1.0, left * *p[order[i]]));
    out[order[i]] = least;
  }
  return out;
}

}  // namespace bamtrain

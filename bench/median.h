#pragma once

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace bamtrain::bench {

/// The median; for an even count the mean of the middle two. REQUIRES: at least one value.
inline double median(std::vector<double> x) {
  require(!x.empty(), "at least one value to take the median of");
  std::sort(x.begin(), x.end());
  const size_t half = x.size() / 2;
  return x.size() % 2 == 1 ? x[half] : (x[half - 1] + x[half]) / 2;
}

}  // namespace bamtrain::bench

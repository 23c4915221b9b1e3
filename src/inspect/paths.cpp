#include "inspect/paths.h"

#include <algorithm>
#include <cmath>

namespace bamtrain {

int64_t Paths::add_row(int64_t i, const std::vector<char>& live) {
  int64_t count = 0;
  long double sum = 0;
  for (size_t j = 0; j < below_.size(); ++j) {
    if (live[j] == 0 && static_cast<int64_t>(j) != i) continue;
    ++count;
    sum += below_[j];
  }
  here_[static_cast<size_t>(i)] = sum;
  return count;
}

double Paths::end_layer() {
  std::swap(below_, here_);
  const long double of_last = below_.back();
  const double paths = log10_ + static_cast<double>(std::log10(of_last));
  // Normalize by the last token, which has the most paths or nearly so.
  for (long double& n : below_) n /= of_last;
  log10_ = paths;
  return paths;
}

}  // namespace bamtrain

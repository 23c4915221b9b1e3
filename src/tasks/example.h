#pragma once
// One sequence of a task.

#include <cstdint>
#include <vector>

#include "core/ignore_index.h"

namespace bamtrain {

using Symbols = std::vector<int32_t>;  // ids

/// What a model reads, and what it should answer there: at position i the class targets[i], or
/// kIgnoreIndex. A decoder that continues a text answers with the token that follows.
struct Example {
  Symbols inputs;
  Symbols targets;  // as many

  void clear() {
    inputs.clear();
    targets.clear();
  }
  void add(int32_t input, int32_t target = kIgnoreIndex) {
    inputs.push_back(input);
    targets.push_back(target);
  }
  bool operator==(const Example&) const = default;
};

}  // namespace bamtrain

#pragma once
// One sequence of a task.

#include <cstdint>
#include <vector>

#include "core/ignore_index.h"

namespace bamtrain {

using Symbols = std::vector<int32_t>;  // ids

/// A model's inputs and targets: at position i it should answer with class targets[i]; kIgnoreIndex
/// means no answer. A decoder that continues a text answers with the next token.
struct Example {
  Symbols inputs;
  Symbols targets;  // same size as inputs

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

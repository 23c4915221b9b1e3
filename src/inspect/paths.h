#pragma once
// Paths along which gradients reach the embedding (ASEntmax, appendix D.3). A path leads from token
// i of a layer's output to every token of its input to which any head of row i gives weight. It
// also leads to token i itself, along the residual stream.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bamtrain {

class Paths {
 public:
  explicit Paths(int64_t T) : below_(static_cast<size_t>(T), 1), here_(below_) {}

  /// Adds row i of the current layer. live (T): whether any head gives weight to the key; the row's
  /// own entry is ignored. Returns the number of tokens that the row reaches. Thread-safe for
  /// distinct rows.
  int64_t add_row(int64_t i, const std::vector<char>& live);
  /// Call after all rows of a layer. Returns log10 of the number of paths from the last token's
  /// output here to the input of the first layer that was added.
  double end_layer();

 private:
  // (T): number of paths from each token to the first layer's input, from the current layer's input
  // and from its output. Uses the type with the largest exponent: n^L, not n, must fit.
  std::vector<long double> below_, here_;
  double log10_ = 0;  // log10 of the factor common to all of below_
};

}  // namespace bamtrain

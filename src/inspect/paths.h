#pragma once
// Paths along which gradients reach the embedding (ASEntmax, appendix D.3): from token i of a
// layer's output one leads to every token of its input that any head of row i gives weight to, and
// to token i itself, by the stream.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bamtrain {

class Paths {
 public:
  explicit Paths(int64_t T) : below_(static_cast<size_t>(T), 1), here_(below_) {}

  /// Row i of the layer at hand: live (T), whether any head gives weight to the key, whatever the
  /// row's own says. Returns how many tokens the row leads to. Rows may come from several threads.
  int64_t add_row(int64_t i, const std::vector<char>& live);
  /// After all rows of a layer: log10 of the number of paths from the last token's output here to
  /// the input of the first layer that was added.
  double end_layer();

 private:
  // (T): paths from each token to the first layer's input, from the input of the layer at hand and
  // from its output. By the largest exponent there is: n^L, not n, has to fit.
  std::vector<long double> below_, here_;
  double log10_ = 0;  // what all of below_ is to be multiplied by
};

}  // namespace bamtrain

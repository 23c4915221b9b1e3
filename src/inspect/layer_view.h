#pragma once
// Attention of one layer over a prompt, head by head. Everything is recomputed in fp64 from the
// inputs of the layer's own operation (ops/reference), one row at a time, so it is valid for every
// prior, mix, scale and normalizer.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/paths.h"
#include "ops/attention.h"

namespace bamtrain {

/// Longer texts have maps of blocks.
inline constexpr int64_t kMapSide = 512;

/// T rows and keys in `side` blocks of `block` tokens; at most kMapSide blocks.
struct MapShape {
  int64_t block = 1, side = 0;

  explicit MapShape(int64_t T) : block((T + kMapSide - 1) / kMapSide) {
    side = (T + block - 1) / block;
  }
};

/// Values of every head's rows, or of their means over blocks. Pairs that no row sees are NaN, or 0
/// in weights.
struct AttentionValues {
  std::vector<float> scores;   // s, before scale and bias
  std::vector<float> prior;    // the bias that a mix of heads reads; empty: no mix
  std::vector<float> bias;     // added to scores; empty: no bias
  std::vector<float> logits;   // z
  std::vector<float> weights;  // p
};

/// Numbers per token and head, such as a scale's beta.
struct GateRows {
  std::string name;
  std::vector<double> values;  // (H, T)
};

struct LayerView {
  int64_t layer = 0, T = 0, H = 0;
  MapShape map;
  // (H, side, side): means over a block's visible pairs of row and key.
  AttentionValues maps;
  std::vector<float> seen;  // (side, side): number of these pairs, the same in every head
  // (H, T): the last row.
  AttentionValues last;
  // (H, T), for each row. entropy: -sum p log p in nats, weights not renormalized. nonzero_keys:
  // keys with weight, underflowed ones included. centroid: the weights' mean key position, NaN
  // without weight. largest: the largest weight. scale: t, empty if there is no scale.
  std::vector<double> entropy, nonzero_keys, centroid, largest, scale;
  std::vector<int64_t> keys;    // (T): number of keys that the row sees
  std::vector<GateRows> gates;  // filled by the caller, who knows the model
  double reached = 0;           // tokens reached from a row (paths.h), mean over rows
  double log10_paths = 0;
  // Largest |sum_j p_ij v_j - out_i| over the largest |out|, in a sample of rows and the last one.
  double error = 0;

  LayerView(int64_t l, int64_t tokens, int64_t heads)
      : layer(l), T(tokens), H(heads), map(tokens) {}
  bool has_bias() const { return !maps.bias.empty(); }

  /// Memory of a view, maps included.
  static int64_t bytes(int64_t T, int64_t H);
};

/// A head's means over rows; the distance only over rows with weight.
struct HeadSummary {
  double entropy = 0, nonzero_keys = 0;
  double distance = 0;  // from the row to its weights' mean key position
  double largest = 0;
};
HeadSummary summary_of(const LayerView& view, int64_t h);

/// The view of `a`, an AttentionCopy's in fp64 with one sequence. out (1, T, H, D): the operation's
/// output, in any dtype.
LayerView view_of_layer(int64_t layer, const Attention& a, const Tensor& out, Paths& paths);

}  // namespace bamtrain

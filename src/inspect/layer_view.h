#pragma once
// What attention of one layer made of a prompt, head by head. Everything is formed again in fp64
// from what the layer's own operation read (ops/reference), one row at a time, so that it holds for
// every prior, mix, scale and normalizer.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/paths.h"
#include "ops/attention.h"

namespace bamtrain {

/// Texts of more tokens have maps of blocks.
inline constexpr int64_t kMapSide = 512;

/// Rows and keys of T tokens in blocks of `block`: `side` of them, at most kMapSide.
struct MapShape {
  int64_t block = 1, side = 0;

  explicit MapShape(int64_t T) : block((T + kMapSide - 1) / kMapSide) {
    side = (T + block - 1) / block;
  }
};

/// Of every head's rows, or of their means over blocks. What no row sees is NaN, and 0 of weights.
struct AttentionValues {
  std::vector<float> scores;   // s, as attention is before scale and bias
  std::vector<float> prior;    // the bias that a mix of heads reads; empty: no mix, or nothing
  std::vector<float> bias;     // what is added to scores; empty: nothing
  std::vector<float> logits;   // z
  std::vector<float> weights;  // p
};

/// Numbers of a token and head, such as a scale's beta.
struct GateRows {
  std::string name;
  std::vector<double> values;  // (H, T)
};

struct LayerView {
  int64_t layer = 0, T = 0, H = 0;
  MapShape map;
  // (H, side, side): means over the pairs of row and key of a block that are visible.
  AttentionValues maps;
  std::vector<float> seen;  // (side, side): how many pairs those are, in every head
  // (H, T): of the last row.
  AttentionValues last;
  // (H, T), of each row: -sum p log p in nats, weights as they are; how many keys have weight, what
  // underflows included; where the weights' mean key is, NaN of a row without any; the largest
  // weight; t, empty where there is no scale.
  std::vector<double> entropy, nonzero_keys, centroid, largest, scale;
  std::vector<int64_t> keys;    // (T): how many the row sees
  std::vector<GateRows> gates;  // filled by who knows the model
  double reached = 0;           // tokens that a row leads to (paths.h), mean over rows
  double log10_paths = 0;
  // Largest |sum_j p_ij v_j - out_i| over the largest |out|, of the rows of checked_rows().
  double error = 0;

  LayerView(int64_t l, int64_t tokens, int64_t heads)
      : layer(l), T(tokens), H(heads), map(tokens) {}
  bool has_bias() const { return !maps.bias.empty(); }

  /// Memory of a view, maps included.
  static int64_t bytes(int64_t T, int64_t H);
};

/// A head's means over rows; the distance over those that have weight.
struct HeadSummary {
  double entropy = 0, nonzero_keys = 0;
  double distance = 0;  // from the row to its weights' mean key
  double largest = 0;
};
HeadSummary summary_of(const LayerView& view, int64_t h);

/// Of the one sequence of `a`, an AttentionCopy's, in fp64. out (1, T, H, D): what the operation
/// gave, in any dtype.
LayerView view_of_layer(int64_t layer, const Attention& a, const Tensor& out, Paths& paths);

}  // namespace bamtrain

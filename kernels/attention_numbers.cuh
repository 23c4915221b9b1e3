#pragma once
// What rows have of their weights, in shared memory.

#include "attention_rows.cuh"

namespace bamtrain::kernels {

/// What the weights and dz of a block's rows need, in shared memory while products are formed, for
/// the registers: LineWeights, and D. The four lanes of a row alone touch what is of it.
class NumbersOfRows {
 public:
  static constexpr int kFloats = 5;  // of a row

  /// `memory`: aligned to 16 bytes.
  BAMTRAIN_DEVICE NumbersOfRows(float* memory, int rows)
      : fours_(reinterpret_cast<Four*>(memory)), thirds_(memory + 4 * rows) {}

  BAMTRAIN_DEVICE void set(int row, const LineWeights& w, float centre) const {
    fours_[row] = {w.slope, w.offset, w.threshold, centre};
    thirds_[row] = w.third;
  }
  BAMTRAIN_DEVICE void set_line(int row, const WeightLine& line) const {
    fours_[row].slope = line.slope;
    fours_[row].offset = line.offset;
  }
  /// That of weights(), of what set_line() writes alone.
  BAMTRAIN_DEVICE WeightLine line(int row, bool takes_logits) const {
    LineWeights w;
    w.slope = fours_[row].slope;
    w.offset = fours_[row].offset;
    return w.line(takes_logits);
  }
  BAMTRAIN_DEVICE LineWeights weights(int row) const {
    LineWeights w;
    w.slope = fours_[row].slope;
    w.offset = fours_[row].offset;
    w.threshold = fours_[row].threshold;
    w.third = thirds_[row];
    return w;
  }
  /// D.
  BAMTRAIN_DEVICE float& centre(int row) const { return fours_[row].centre; }

 private:
  struct alignas(16) Four {
    float slope, offset, threshold, centre;
  };
  Four* fours_;
  float* thirds_;
};

/// Logits of topk with the threshold that have no weight become minus infinity, in row r's part of
/// the keys at j0.
template <class Block, int M>
BAMTRAIN_DEVICE void drop_ties(GroupsOfLogits<M>& z, const LineWeights& weights, const Block& own,
                               const auto& a, int r, int j0, const Lane& l) {
  if (!weights.cuts_ties(own.last(a, r), j0 + kPart - 1)) return;
  own.for_row(r, [&](int n, int e) {
    if (weights.drops_tie(z[r / 2][n][e], j0 + l.column(n, e))) z[r / 2][n][e] = kMinusInfinity;
  });
}

}  // namespace bamtrain::kernels

#pragma once
// Biases of the CPU attention's general path, a row at a time: logits from content scores, and the
// way back.

#include <functional>

#include "ops/cpu/attention_partials.h"
#include "ops/cpu/attention_tasks.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

/// Keys [first, first + n) of query i, a row's; `r` is the query's number in its tile.
struct RowSpan {
  int64_t i, r, first, n;
};

/// Of one task, whose scratch it takes.
class RowBias {
 public:
  virtual ~RowBias() = default;
  /// Of the rows to come: of a head of a sequence, of a tile of its queries [i0, i1), which see
  /// keys [j_first, j_end), and, for the way back, of a part of the queries (attention_tasks.h).
  virtual void set_head(int64_t, int64_t) {}
  virtual void set_tile(int64_t, int64_t, int64_t, int64_t) {}
  virtual void clear_head() {}       // gradients that are summed over the head begin at 0
  virtual void set_part(int64_t) {}  // likewise of the part
  /// Both, where each part is another task's: gradients that are summed over the head are then in
  /// parts too, see join_parts() of attention_partials.h.
  virtual void clear_part(int64_t) {}

  /// z = t s + of_bias b in place of s.
  virtual void add(float* z, const RowSpan& row, float t, float of_bias) = 0;
  /// Adds what dz gives to the bias's gradients, db = of_bias dz; returns the sum of dz b where
  /// `scaled`. The row is that of the last add(), with the same factors.
  virtual float adjoint(float* dz, const RowSpan& row, float t, float of_bias, bool scaled) = 0;
  /// Whether a key's bias reads the scores of others. Then none of them is left out in a pass back;
  /// adjoint() leaves ds = t dz and what the bias gives in place of dz, and where there is a scale
  /// returns all of its gradient, the sum of dz s too.
  virtual bool reads_scores() const { return false; }
  /// Of a bias that reads queries and keys, what it gives to them. After the rows of a tile: adds
  /// to dquery (rows, padded(D)), which is multiplied by `unit` when it is complete. After the
  /// tiles of a head: to dkeys (T, padded(D)).
  virtual void end_tile(float* /*dquery*/, float /*unit*/) {}
  virtual void end_head(const float* /*keys*/, float* /*dkeys*/) {}
};

/// Calls work(bias), std::ref of a function: nothing takes memory. g: where the gradients of rows
/// go; null in a forward pass.
void with_row_bias(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                   float* scratch, const std::function<void(RowBias&)>& work);
/// Its floats.
int64_t row_bias_floats(int64_t T, int64_t D, const ContentShape& content);
/// Those of a bias's partial sums, of one head of a sequence.
int64_t content_partial_floats(int64_t T, int64_t D, const ContentShape& content);

/// Those of all heads at once, of a bias that reads no queries and keys.
class RowBiases {
 public:
  virtual ~RowBiases() = default;
  virtual RowBias& of(int64_t h) = 0;
};
void with_row_biases(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                     float* scratch, const std::function<void(RowBiases&)>& work);
int64_t row_biases_floats(int64_t T, int64_t H);

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

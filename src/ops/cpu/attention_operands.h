#pragma once
// What the CPU attention multiplies: queries, keys and values of a head, packed once in the form
// that products read, and the two products of a tile.

#include <cstdint>
#include <functional>

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Stores the weights of a row and a tile of keys: as numbers of fp32, or each as the sum of two of
/// bf16 in the same place, (2, kK).
inline void put_weights(float* to, const Vec (&p)[kV], bool in_two) {
  if (in_two) {
    bf16* const halves = reinterpret_cast<bf16*>(to);
    for (int64_t v = 0; v < kV; v += 2) {
      bf16* const first = halves + v * simd::kWidth;
      simd::store_in_two(first, first + kK, p[v], p[v + 1]);
    }
  } else {
    for (int64_t v = 0; v < kV; ++v) simd::store(to + v * simd::kWidth, p[v]);
  }
}

class Operands {
 public:
  virtual ~Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  /// Room for `keys` keys, whole tiles, and `query_tiles` tiles of queries.
  static int64_t floats(int64_t keys, int64_t query_tiles, int64_t Dp);

  /// Keys and values [begin, end) of key head kh; the first is key `at` of what follows, which
  /// begins a tile. In place `at` is 0: one key head at a time.
  virtual void pack_keys(int64_t at, int64_t b, int64_t kh, int64_t begin, int64_t end) = 0;
  /// Queries [begin, end) of head h, at most kQ, as tile n: rows of q, not positions.
  virtual void pack_queries(int64_t n, int64_t b, int64_t h, int64_t begin, int64_t end) = 0;
  /// Queries [r, r + rows) of query tile n, at most rows_at_once, times the keys of the tile from j
  /// on: (rows, kK) at s, which score_factor() makes content scores. There is room for rows up to a
  /// multiple of 16.
  virtual void scores(int64_t n, int64_t r, int64_t rows, int64_t j, float* s,
                      int64_t stride) const = 0;
  /// out (rows, Dp) += the weights at p, see put_weights(), times the values of `live` keys from j
  /// on. The weights of the tile's other keys are zero.
  virtual void add_values(float* out, int64_t rows, const float* p, int64_t stride, int64_t j,
                          int64_t live) const = 0;
  virtual float score_factor() const { return 1; }

  const int64_t rows_at_once;
  const bool in_two;  // how weights are stored

 protected:
  Operands(int64_t most_rows, bool weights_in_two)
      : rows_at_once(most_rows), in_two(weights_in_two) {}
};

/// How keys are read.
enum class Reading {
  packed,       // packed; in bf16 by the processor's products of bf16, where it has such
  packed_fp32,  // packed, and multiplied in fp32
  in_place      // where they lie, once: of a few queries packing would read and write them again
};

struct OperandsRead {
  Reading reading;
  bool values = true;       // false: no call of add_values() follows
  float* packed = nullptr;  // with packed_fp32: for keys and values, where tasks share them
};
/// Calls f(operands). With products of bf16, scores are exact except for their sums in fp32.
/// Weights meet the values as sums of two numbers of bf16, so results are as near to the truth as
/// with products of fp32. Rounded to bf16 once, weights would spoil gradients: a backward pass
/// takes the difference of two sums over weights, most of which cancels.
void with_operands(const Attention& a, const AttentionScratch& s, Pieces& pieces,
                   const OperandsRead& read, int64_t keys, int64_t query_tiles,
                   const std::function<void(Operands&)>& f);

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

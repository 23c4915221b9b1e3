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

/// Logits of some rows of a tile of queries with a tile of keys, whose place weights take.
struct LogitStrip {
  float* memory;  // (rows, kK)
  bool in_two;    // whether weights are sums of two numbers of bf16: (rows, 2, kK)

  float* logits(int64_t r) const { return memory + r * kK; }
  void put(int64_t r, const Vec (&p)[kV]) const {
    if (in_two) {
      bf16* const to = reinterpret_cast<bf16*>(logits(r));
      for (int64_t v = 0; v < kV; v += 2) {
        bf16* const first = to + v * simd::kWidth;
        simd::store_in_two(first, first + kK, p[v], p[v + 1]);
      }
    } else {
      for (int64_t v = 0; v < kV; ++v) simd::store(logits(r) + v * simd::kWidth, p[v]);
    }
  }
};

class Operands {
 public:
  virtual ~Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  /// Room for `keys` keys, whole tiles, and `query_tiles` tiles of queries.
  static int64_t floats(int64_t keys, int64_t query_tiles, int64_t Dp);

  /// Keys and values [begin, end) of key head kh; the first is key 0 of what follows.
  virtual void pack_keys(int64_t b, int64_t kh, int64_t begin, int64_t end) = 0;
  /// Queries [begin, end) of head h, at most kQ, as tile n. Rows of q: those of a text's piece are
  /// counted from its own first.
  virtual void pack_queries(int64_t n, int64_t b, int64_t h, int64_t begin, int64_t end) = 0;
  /// strip() = queries [r, r + rows) of query tile n, at most rows_at_once(), times the keys of the
  /// tile from j on, which score_factor() makes content scores.
  virtual void scores(int64_t n, int64_t r, int64_t rows, int64_t j) const = 0;
  /// out (rows, Dp) += the weights in strip() times the values of `live` keys from j on. The
  /// weights of the tile's other keys are zero.
  virtual void add_values(float* out, int64_t rows, int64_t j, int64_t live) const = 0;

  const LogitStrip& strip() const { return strip_; }
  int64_t rows_at_once() const { return rows_at_once_; }
  virtual float score_factor() const = 0;
  /// Rows [begin, end) of out at (b, h) from rows (Dp) of fp32.
  virtual void unpack(const Tensor& out, int64_t b, int64_t h, int64_t begin, int64_t end,
                      const float* rows) const = 0;

 protected:
  Operands(Pieces& pieces, int64_t rows_at_once, bool in_two)
      : rows_at_once_(rows_at_once), strip_{pieces.take(rows_at_once * kK), in_two} {}

 private:
  int64_t rows_at_once_;
  LogitStrip strip_;
};

/// Calls f(operands): in bf16 by the processor's products of bf16, where it has such. Scores are
/// exact but for their sums in fp32, and weights meet the values as sums of two numbers of bf16:
/// what comes out is as near to the truth as by products of fp32, which serve everything else.
/// Rounded to bf16 once, weights would spoil gradients: a backward pass takes the difference of
/// what weights gather there and of what they gathered here, most of which cancels.
void with_operands(const Attention& a, const AttentionScratch& s, Pieces& pieces, int64_t keys,
                   int64_t query_tiles, const std::function<void(Operands&)>& f);

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

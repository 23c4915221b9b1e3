#pragma once
// What the backward pass of the CPU attention multiplies: keys and values of some key heads, rows
// of queries and of dout of one query head, and the gradients that products add to. fp32.

#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class BackwardOperands {
 public:
  /// Of the query heads in `heads`. packed: what pack_keys() wrote for all their key heads, and
  /// gradients: those of keys, then of values, (2, key heads, padded T, padded D). Null: in
  /// scratch.
  BackwardOperands(const Attention& a, const Tensor& dout, int64_t b, Span heads, float* packed,
                   float* gradients, Pieces& pieces);
  /// For one key head, all in scratch; with `shared`, packed keys and gradients are elsewhere.
  static int64_t floats(int64_t T, int64_t D, bool shared);

  /// Keys and values of key head kh to arrays of (padded T, padded D) of key heads: rows of keys,
  /// transposed keys and transposed values, each `stride` apart.
  static void pack_keys(const Attention& a, int64_t b, int64_t kh, Span keys, float* to,
                        int64_t stride);
  void pack_keys(Span keys) {
    pack_keys(a_, b_, key_heads_.begin, keys, all_keys_, key_heads_.size() * head_floats_);
  }
  void clear_gradients(Span keys);
  /// To dk and dv, of the only key head.
  void unpack_gradients(const AttentionGradients& g, Span keys) const;

  /// What follows is of query head h.
  void set_head(int64_t h);
  /// Rows [i0, i1) of queries, divided as content scores are; dquery becomes 0.
  void pack_queries(int64_t i0, int64_t i1);
  void pack_dout(int64_t i0, int64_t i1) const;

  // Products of rows of a tile with the keys, or values, of the tile from j0 on.

  void scores(const Block& s, int64_t j0) const;
  void dP(const Block& to, int64_t j0) const;
  /// What the weights and dz of `live` keys from j0 on give.
  void to_values(const Block& p, int64_t j0, int64_t live) const;
  void to_keys(const Block& dz, int64_t j0, int64_t live) const;
  void to_queries(const Block& dz, int64_t j0, int64_t live) const;

  float *query, *dquery, *dout_rows;  // (kQ, padded D)
  float* scaled_query;                // for to_keys(): query, or with a scale the caller's
  float *keys, *dkeys;                // of the head, (padded T, padded D)

 private:
  int64_t key_head(int64_t h) const { return h / (a_.q.shape[2] / a_.k.shape[2]); }
  /// Where the rows from key j on are of a key head's array.
  float* at(float* of_head, int64_t j) const { return of_head + j * Dp_; }

  const Attention& a_;
  const Tensor dout_;
  const int64_t b_, D_ = a_.q.shape[3], Dp_ = padded(D_);
  const int64_t head_floats_ = padded_keys(a_.q.shape[1]) * Dp_;
  const Span key_heads_;
  float *all_keys_, *all_keys_t_, *all_values_t_;  // by key head: rows; transposed tiles
  float *all_dkeys_, *all_dvalues_;
  int64_t h_ = 0;
  float *keys_t_, *values_t_, *dvalues_;  // of the head
};

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

#pragma once
// Attention, backward, without atomics. Kernels in this order:
//
//   attention_backward_queries  a block per 64 or 128 queries of one head: dq, dt, sums of db by
//                               fire's segments
//   attention_backward_keys     dk, dv, sums of db by distance
//   attention_backward_table    the sums of all blocks, in order, to dtable;
//   attention_backward_fire     to dfire
//
// Logits are computed twice, seven products in all instead of five; in return every output has one
// block that owns it. dz_ij = u_ij (<dO_i, v_j> - D_i). Rows that see one key have dz = 0 exactly.

#include "attention_rows.cuh"

namespace bamtrain::kernels {

/// What the backward kernels read and leave to each other.
template <class A>
struct BackwardSaved {
  Rows<const A> out, dout;
  SavedRows rows;
  float *centre, *factor;  // (B, H, T) each: D, and what weights are multiplied by
  float* third;            // (B, H, T): of RowWeights
  float* carries;          // (heads in flight, parts of keys, T, 2): `broken` and `before` of a row

  /// Of a row of the n-th head in flight and the keys from j0 on.
  BAMTRAIN_DEVICE float* carry(const AttentionInputs<A>& a, int n, int j0, int row) const {
    const int parts = (a.T + kTile - 1) / kTile * kParts;
    return carries + ((static_cast<int64_t>(n) * parts + j0 / kPart) * a.T + row) * 2;
  }
};

/// What attention_backward_queries writes beside dq.
struct RowGradients {
  float* scale;              // (B, H, T), with a scale
  float* numbers;            // (B, H, T), with numbers: the queries' part
  float *fire_u, *fire_psi;  // (B, H, T) each, with fire
  float* fire_partial;       // (B, H, tiles of queries, kFirePartial), with fire
};

/// The part of <dO, out> that the lane's columns of row r have, of a row inside.
template <int D, class A, class Block>
BAMTRAIN_DEVICE float row_product_of_lane(const BackwardSaved<A>& saved, const Block& own, int r,
                                          const Lane& l) {
  const A* const out = row_of(saved.out, own.b, own.rows[r], own.h);
  const A* const dout = row_of(saved.dout, own.b, own.rows[r], own.h);
  float sum = 0;
  BAMTRAIN_UNROLL
  for (int n = 0; n < D / 8; ++n) {
    const TwoFloats x = load_pair(out, n, l), y = load_pair(dout, n, l);
    sum += x.x * y.x;
    sum += x.y * y.y;
  }
  return sum;
}

/// The queries from here on see none of the keys of the tile at j0.
BAMTRAIN_DEVICE int end_of_queries(const int32_t* first_key, int j0, int T) {
  // first_key never falls: the first row whose first key lies past the tile.
  int low = j0, high = T;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (first_key[middle] > j0 + kTile - 1) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace bamtrain::kernels

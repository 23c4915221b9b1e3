#pragma once
// What the kernels of one query share: a block's piece of the keys, and their logits. A key and its
// value are read once each, 16 bytes a lane, by up to four of the query heads that share them, and
// nothing waits for shared memory: the kernels are as fast as memory is.

#include <bit>

#include "attention.cuh"
#include "attention_bias.cuh"
#include "attention_decode.h"
#include "vectors.cuh"

namespace bamtrain::kernels {

constexpr int kDecodeWarps = kThreads / 32;

/// Lanes that share a key, a chunk of 16 bytes each: a power of two, so that some of the last have
/// none where D / 8 is no such.
template <int D>
constexpr int kKeyLanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(D / 8)));

/// Blocks on a multiprocessor that registers allow without spilling, and which have enough bytes on
/// their way.
template <int R>
constexpr int kPieceBlocks = R == 4   ? 2
                             : R == 2 ? 3
                                      : 4;

/// A piece of the keys that the query of a sequence sees, for R of the query heads that share them.
/// Of a grid (pieces, K times groups of R query heads, B) of kThreads threads.
template <int D, int R>
struct KeyPiece {
  static constexpr int kLanes = kKeyLanes<D>;
  static constexpr int kKeys = 32 / kLanes;      // of a warp at a time
  static constexpr int kAhead = R == 4 ? 2 : 4;  // of a lane at a time

  Lane l;
  int pieces, piece, b;
  int kh, h0, heads;  // the key head; the first query head, and R or fewer of them
  int i;              // the query
  int64_t begin;      // of the keys: where T or more begin, past 2^31
  int end;
  bool has_chunk;  // whether this lane's chunk is one of D / 8
  int column;      // where it begins

  BAMTRAIN_DEVICE explicit KeyPiece(const AttentionInputs<bf16>& a) {
    const int group = a.H / a.K, groups = (group + R - 1) / R;
    const int of_heads = static_cast<int>(device::block_index().y);
    pieces = static_cast<int>(device::grid_size().x);
    piece = static_cast<int>(device::block_index().x);
    b = static_cast<int>(device::block_index().z);
    kh = of_heads / groups;
    h0 = kh * group + of_heads % groups * R;
    heads = (kh + 1) * group - h0;
    i = a.formed.first;
    const int first = a.first_key[static_cast<int64_t>(b) * a.T + i], seen = i - first + 1;
    const int of_piece = (seen + pieces - 1) / pieces;
    const int length = of_piece > kDecodeKeys ? of_piece : kDecodeKeys;
    begin = first + int64_t{piece} * length;
    end = static_cast<int>(begin + length <= i ? begin + length : i + 1);
    const int chunk = l.lane % kLanes;
    has_chunk = 8 * chunk < D;
    column = has_chunk ? 8 * chunk : 0;
  }

  /// Of those that are not its own the first one's number.
  BAMTRAIN_DEVICE int head(int r) const { return h0 + (r < heads ? r : 0); }
  /// Where the row of head r begins in a (B, H, T) array.
  BAMTRAIN_DEVICE int64_t row(const AttentionInputs<bf16>& a, int r) const {
    return (static_cast<int64_t>(b) * a.H + head(r)) * a.T;
  }
  /// This lane's chunk of a key or a value.
  BAMTRAIN_DEVICE Words chunk_of(const Rows<const bf16>& x, int key) const {
    return *reinterpret_cast<const Words*>(row_of(x, b, key, kh) + column);
  }
  /// f(keys, inside) for kAhead keys of this lane at a time, the same for the lanes that share
  /// them; those that are not inside are the last. All lanes of a warp together.
  template <class F>
  BAMTRAIN_DEVICE void for_keys(const F& f) const {
    // Of one lane for all, so that the compiler knows that a warp stays together.
    const int warp = device::shuffle(device::kWholeWarp, l.warp, 0);
    for (int64_t j0 = begin + warp * kKeys * kAhead; j0 < end;
         j0 += kDecodeWarps * kKeys * kAhead) {
      int keys[kAhead];
      bool inside[kAhead];
      BAMTRAIN_UNROLL
      for (int n = 0; n < kAhead; ++n) {
        const int64_t j = j0 + n * kKeys + l.lane / kLanes;
        inside[n] = j < end;
        keys[n] = inside[n] ? static_cast<int>(j) : end - 1;
      }
      f(keys, inside);
    }
  }
};

/// What the logits of its heads are made of, times `unit`.
template <int D, int R>
struct DecodedQueries {
  using Piece = KeyPiece<D, R>;

  float q[R][8], t[R];
  float unit;

  BAMTRAIN_DEVICE DecodedQueries(const AttentionInputs<bf16>& a, const Piece& own, float in)
      : unit(in) {
    const float factor = unit / a.content_divisor;
    BAMTRAIN_UNROLL
    for (int r = 0; r < R; ++r) {
      load_vector(q[r], row_of(a.q, own.b, own.i, own.head(r)) + own.column);
      BAMTRAIN_UNROLL
      for (int c = 0; c < 8; ++c) q[r][c] = own.has_chunk ? q[r][c] * factor : 0.0f;
      t[r] = a.scale != nullptr ? a.scale[own.row(a, r) + own.i] : 1.0f;
    }
  }

  /// Of one key, whose chunk is k, in all lanes that share it.
  BAMTRAIN_DEVICE void logits(float (&z)[R], const AttentionInputs<bf16>& a, const Piece& own,
                              int key, const Words& k) const {
    const FirePoint of_fire(a, own.b, own.i, key);
    BAMTRAIN_UNROLL
    for (int r = 0; r < R; ++r) {
      float product = 0;
      BAMTRAIN_UNROLL
      for (int w = 0; w < 4; ++w) {
        product += q[r][2 * w] * device::low_bf16(k.w[w]);
        product += q[r][2 * w + 1] * device::high_bf16(k.w[w]);
      }
      BAMTRAIN_UNROLL
      for (int distance = 1; distance < Piece::kLanes; distance *= 2) {
        product += device::shuffle_xor(device::kWholeWarp, product, distance);
      }
      const int h = own.head(r);
      const float bias =
          unit * (a.formed.b != nullptr ? bias_of(a, own.b, h, own.i, key).b
                                        : prior_bias_of(a, own.b, h, own.i, key, of_fire).b);
      z[r] = t[r] * product + (a.scale_bias ? t[r] : 1.0f) * bias;
    }
  }
};

/// values += p v.
BAMTRAIN_DEVICE void add_weighted(float (&values)[8], float p, const Words& v) {
  BAMTRAIN_UNROLL
  for (int w = 0; w < 4; ++w) {
    values[2 * w] += p * device::low_bf16(v.w[w]);
    values[2 * w + 1] += p * device::high_bf16(v.w[w]);
  }
}

/// launch.operator()<R>(grid) for the R by which blocks take the query heads of a key head.
template <class Launch>
device::LaunchStatus of_pieces(const AttentionInputs<bf16>& a, const Launch& launch) {
  const int group = a.H / a.K;
  const auto grid = [&](int R) {
    return device::Dim3{static_cast<uint32_t>(attention_decode_pieces(a.T)),
                        static_cast<uint32_t>(a.K * ((group + R - 1) / R)),
                        static_cast<uint32_t>(a.B)};
  };
  if (group == 1) return launch.template operator()<1>(grid(1));
  if (group == 2) return launch.template operator()<2>(grid(2));
  return launch.template operator()<4>(grid(4));
}

/// Of any normalizer but softmax and stick-breaking (attention_decode_searched.cu), which are
/// checked: `logits` (B, H, T) becomes the weights.
template <int D>
device::LaunchStatus attention_decode_searched(const AttentionForward<bf16>& f, float* partial,
                                               float* logits, device::Stream stream);

}  // namespace bamtrain::kernels

// One query of each text by softmax: a block keeps the sums of its piece relative to the largest
// logit that it has met; another kernel joins the pieces of a head.

#include "attention_checks.h"
#include "attention_content.h"
#include "attention_decode.cuh"
#include "attention_head_dim.h"
#include "reductions.cuh"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

/// The sums of weighted values and of weights, relative to the largest logit in base 2.
template <int N>
struct DecodedSums {
  float values[N] = {};
  float weights = 0, largest = kMinusInfinity;

  /// What both are multiplied by where `highest` becomes the largest.
  BAMTRAIN_DEVICE static float factor(float largest, float highest) {
    return device::exp2_approx(largest - base(highest));
  }
  /// Without any key there is nothing to be relative to.
  BAMTRAIN_DEVICE static float base(float largest) {
    return largest == kMinusInfinity ? 0.0f : largest;
  }
  BAMTRAIN_DEVICE void raise(float highest) {
    const float keep = factor(largest, highest);
    BAMTRAIN_UNROLL
    for (int c = 0; c < N; ++c) values[c] *= keep;
    weights *= keep;
    largest = highest;
  }
  /// The sums of the lane at that distance are added to the own, and the own to its.
  BAMTRAIN_DEVICE void join(int lane_mask) {
    const float of_other = device::shuffle_xor(device::kWholeWarp, largest, lane_mask);
    raise(fmaxf(largest, of_other));
    weights += device::shuffle_xor(device::kWholeWarp, weights, lane_mask);
    BAMTRAIN_UNROLL
    for (int c = 0; c < N; ++c) {
      values[c] += device::shuffle_xor(device::kWholeWarp, values[c], lane_mask);
    }
  }
};

/// partial (B, H, pieces, D + 2). Launch as KeyPiece says.
template <int D, int R>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kPieceBlocks<R>)
    attention_decode_piece(AttentionInputs<bf16> a, float* partial) {
  using Piece = KeyPiece<D, R>;
  constexpr int kLanes = Piece::kLanes, kAhead = Piece::kAhead, kRow = D + 2;
  BAMTRAIN_SHARED(float, sums_of_warps, kDecodeWarps* R* kRow);
  const Piece own(a);
  const Lane& l = own.l;
  const DecodedQueries<D, R> queries(a, own, kLog2e);
  DecodedSums<8> sums[R];
  own.for_keys([&](const int(&keys)[kAhead], const bool(&inside)[kAhead]) {
    Words k[kAhead], v[kAhead];
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) {
      k[n] = own.chunk_of(a.k, keys[n]);
      v[n] = own.chunk_of(a.v, keys[n]);
    }
    float z[kAhead][R];
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) queries.logits(z[n], a, own, keys[n], k[n]);
    BAMTRAIN_UNROLL
    for (int r = 0; r < R; ++r) {
      float highest = sums[r].largest;
      BAMTRAIN_UNROLL
      for (int n = 0; n < kAhead; ++n) {
        if (!inside[n]) z[n][r] = kMinusInfinity;
        highest = fmaxf(highest, z[n][r]);
      }
      sums[r].raise(highest);
      BAMTRAIN_UNROLL
      for (int n = 0; n < kAhead; ++n) {
        const float p = sums[r].factor(z[n][r], highest);
        sums[r].weights += p;
        add_weighted(sums[r].values, p, v[n]);
      }
    }
  });

  BAMTRAIN_UNROLL
  for (int r = 0; r < R; ++r) {
    BAMTRAIN_UNROLL
    for (int distance = kLanes; distance < 32; distance *= 2) sums[r].join(distance);
    float* const to = sums_of_warps + (l.warp * R + r) * kRow;
    if (l.lane < kLanes && own.has_chunk) {
      BAMTRAIN_UNROLL
      for (int c = 0; c < 8; ++c) to[own.column + c] = sums[r].values[c];
    }
    if (l.lane == 0) {
      to[D] = sums[r].weights;
      to[D + 1] = sums[r].largest;
    }
  }
  device::barrier();
  const int thread = 32 * l.warp + l.lane;
  for (int n = thread; n < R * kRow; n += kThreads) {
    const int r = n / kRow, c = n % kRow;
    if (r >= own.heads) break;
    const float* const of_row = sums_of_warps + r * kRow;
    float largest = kMinusInfinity, sum = 0;
    for (int w = 0; w < kDecodeWarps; ++w) {
      largest = fmaxf(largest, of_row[w * R * kRow + D + 1]);
    }
    for (int w = 0; w < kDecodeWarps; ++w) {
      const float* const of_warp = of_row + w * R * kRow;
      if (c <= D) sum += of_warp[c] * DecodedSums<8>::factor(of_warp[D + 1], largest);
    }
    const int64_t head = static_cast<int64_t>(own.b) * a.H + own.h0 + r;
    partial[(head * own.pieces + own.piece) * kRow + c] = c <= D ? sum : largest;
  }
}

/// out (B, 1, H, D) and level (B, H, T) of query i, from `partial`. Launch with grid (H, B) and
/// kThreads threads.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads)
    attention_decode_joined(Rows<bf16> out, float* level, const float* partial, int pieces, int i,
                            int T) {
  static_assert(kDecodePieces <= kThreads && D <= kThreads);
  constexpr int kRow = D + 2, kColumns = (D + 31) / 32;
  BAMTRAIN_SHARED(float, factors, kDecodePieces);
  BAMTRAIN_SHARED(float, scratch_of_largest, kDecodeWarps);
  BAMTRAIN_SHARED(float, scratch_of_weights, kDecodeWarps);
  BAMTRAIN_SHARED(float, sums_of_warps, kDecodeWarps* D);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int h = static_cast<int>(device::block_index().x);
  const int b = static_cast<int>(device::block_index().y);
  const int64_t head = static_cast<int64_t>(b) * device::grid_size().x + h;
  const float* const of_head = partial + head * pieces * kRow;

  const bool has_piece = thread < pieces;
  const float own = has_piece ? of_head[thread * kRow + D + 1] : kMinusInfinity;
  const float largest = block_max(own, scratch_of_largest);
  const float factor = DecodedSums<1>::factor(own, largest);
  if (has_piece) factors[thread] = factor;
  const float of_piece = has_piece ? of_head[thread * kRow + D] * factor : 0.0f;
  const float weights = block_sum(of_piece, scratch_of_weights);

  float sums[kColumns] = {};
  BAMTRAIN_UNROLL_TIMES(4)
  for (int piece = l.warp; piece < pieces; piece += kDecodeWarps) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      const int c = l.lane + 32 * n;
      if (c < D) sums[n] += factors[piece] * of_head[piece * kRow + c];
    }
  }
  BAMTRAIN_UNROLL
  for (int n = 0; n < kColumns; ++n) {
    const int c = l.lane + 32 * n;
    if (c < D) sums_of_warps[l.warp * D + c] = sums[n];
  }
  device::barrier();
  if (thread < D) {
    float sum = 0;
    for (int w = 0; w < kDecodeWarps; ++w) sum += sums_of_warps[w * D + thread];
    store_one(row_of(out, b, i, h) + thread, sum / weights);
  }
  if (thread == 0) level[head * T + i] = (largest + device::log2_approx(weights)) * kLn2;
}

template <int D>
LaunchStatus decode_softmax(const AttentionForward<bf16>& f, float* partial, Stream stream) {
  const AttentionInputs<bf16>& a = f.in;
  const LaunchStatus status = of_pieces(a, [&]<int R>(Dim3 grid) {
    return device::launch(attention_decode_piece<D, R>, grid, {kThreads, 1, 1}, 0, stream, a,
                          partial);
  });
  if (!status.ok()) return status;
  return device::launch(attention_decode_joined<D>,
                        Dim3{static_cast<uint32_t>(a.H), static_cast<uint32_t>(a.B), 1},
                        {kThreads, 1, 1}, 0, stream, f.out, f.saved.level, partial,
                        attention_decode_pieces(a.T), a.formed.first, a.T);
}

template <int D>
LaunchStatus decode(const AttentionForward<bf16>& f, float* scratch, Stream stream) {
  const AttentionInputs<bf16>& a = f.in;
  if (traits_of(a.normalizer.kind).fused) return decode_softmax<D>(f, scratch, stream);
  float* const logits = scratch + attention_decode_sums(a.B, a.T, a.H, a.D);
  return attention_decode_searched<D>(f, scratch, logits, stream);
}

}  // namespace

LaunchStatus attention_decode(const AttentionForward<bf16>& f, float* scratch, Stream stream) {
  if (const char* why = refusal(f)) return device::refused(why);
  if (const char* why = tiles_refusal(f.in)) return device::refused(why);
  if (!decodes(f.in)) return device::refused("attention: to decode, one query");
  if (scratch == nullptr) return device::refused("attention: to decode, scratch is missing");
  return of_head_dim<bf16>(f.in.D, [&]<int D>() {
    if (!reads_content(f.in)) return decode<D>(f, scratch, stream);
    return with_content(f.in, stream, content_biases_of<D>,
                        [&](const AttentionInputs<bf16>& in, const QueryPart& part) {
                          return decode<D>(of_part(f, in, part), scratch, stream);
                        });
  });
}

}  // namespace bamtrain::kernels

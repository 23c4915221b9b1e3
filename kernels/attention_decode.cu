// A block takes a piece of the keys that one query sees, for up to four of the query heads that
// share them; its warps take turns at them, a few keys at a time. A key and its value are read once
// each, 16 bytes a lane, and nothing waits for shared memory: the kernel is as fast as memory is.
// Another kernel joins the pieces of a head.

#include <bit>

#include "attention.cuh"
#include "attention_bias.cuh"
#include "attention_checks.h"
#include "attention_content.h"
#include "attention_decode.h"
#include "attention_head_dim.h"
#include "reductions.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

constexpr int kDecodeWarps = kThreads / 32;

/// Lanes that share a key, a chunk of 16 bytes each: a power of two, so that some of the last have
/// none where D / 8 is no such.
template <int D>
constexpr int kKeyLanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(D / 8)));

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

/// partial (B, H, pieces, D + 2). Launch with grid (pieces, K times groups of R query heads, B) and
/// kThreads threads.
template <int D, int R>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads)
    attention_decode_piece(FusedInputs a, float* partial) {
  constexpr int kLanes = kKeyLanes<D>, kKeys = 32 / kLanes;  // of a warp at a time
  constexpr int kAhead = R == 4 ? 2 : 4;                     // of a lane at a time
  constexpr int kRow = D + 2;
  BAMTRAIN_SHARED(float, sums_of_warps, kDecodeWarps* R* kRow);
  const Lane l;
  const int pieces = static_cast<int>(device::grid_size().x);
  const int piece = static_cast<int>(device::block_index().x);
  const int b = static_cast<int>(device::block_index().z);
  const int group = a.H / a.K, groups = (group + R - 1) / R;
  const int kh = static_cast<int>(device::block_index().y) / groups;
  const int h0 = kh * group + static_cast<int>(device::block_index().y) % groups * R;
  const int heads = (kh + 1) * group - h0;  // R or fewer are its own
  const int chunk = l.lane % kLanes;
  const bool has_chunk = 8 * chunk < D;
  const int column = has_chunk ? 8 * chunk : 0;

  const int i = a.formed.first;
  const int first = a.first_key[static_cast<int64_t>(b) * a.T + i], seen = i - first + 1;
  const int of_piece = (seen + pieces - 1) / pieces;
  const int length = of_piece > kDecodeKeys ? of_piece : kDecodeKeys;
  const int64_t begin = first + int64_t{piece} * length;  // of T or more keys, past 2^31
  const auto end = static_cast<int>(begin + length <= i ? begin + length : i + 1);

  float q[R][8], t[R];
  BAMTRAIN_UNROLL
  for (int r = 0; r < R; ++r) {
    const int h = h0 + (r < heads ? r : 0);
    load_vector(q[r], row_of(a.q, b, i, h) + column);
    BAMTRAIN_UNROLL
    for (int c = 0; c < 8; ++c) q[r][c] = has_chunk ? q[r][c] * a.score_factor : 0.0f;
    t[r] = a.scale != nullptr ? a.scale[(static_cast<int64_t>(b) * a.H + h) * a.T + i] : 1.0f;
  }

  DecodedSums<8> sums[R];
  for (int64_t j0 = begin + l.warp * kKeys * kAhead; j0 < end;
       j0 += kDecodeWarps * kKeys * kAhead) {
    int keys[kAhead];
    bool inside[kAhead];
    Words k[kAhead], v[kAhead];
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) {
      const int64_t j = j0 + n * kKeys + l.lane / kLanes;
      inside[n] = j < end;
      keys[n] = inside[n] ? static_cast<int>(j) : end - 1;
      k[n] = *reinterpret_cast<const Words*>(row_of(a.k, b, keys[n], kh) + column);
      v[n] = *reinterpret_cast<const Words*>(row_of(a.v, b, keys[n], kh) + column);
    }
    float z[R][kAhead];
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) {
      const FirePoint of_fire(a, b, i, keys[n]);
      BAMTRAIN_UNROLL
      for (int r = 0; r < R; ++r) {
        float product = 0;
        BAMTRAIN_UNROLL
        for (int w = 0; w < 4; ++w) {
          product += q[r][2 * w] * device::low_bf16(k[n].w[w]);
          product += q[r][2 * w + 1] * device::high_bf16(k[n].w[w]);
        }
        BAMTRAIN_UNROLL
        for (int distance = 1; distance < kLanes; distance *= 2) {
          product += device::shuffle_xor(device::kWholeWarp, product, distance);
        }
        const int h = h0 + (r < heads ? r : 0);
        const float bias =
            kLog2e * (a.formed.b != nullptr ? bias_of(a, b, h, i, keys[n]).b
                                            : prior_bias_of(a, b, h, i, keys[n], of_fire).b);
        const float u = a.scale_bias ? t[r] : 1.0f;
        z[r][n] = inside[n] ? t[r] * product + u * bias : kMinusInfinity;
      }
    }
    BAMTRAIN_UNROLL
    for (int r = 0; r < R; ++r) {
      float highest = sums[r].largest;
      BAMTRAIN_UNROLL
      for (int n = 0; n < kAhead; ++n) highest = fmaxf(highest, z[r][n]);
      sums[r].raise(highest);
      BAMTRAIN_UNROLL
      for (int n = 0; n < kAhead; ++n) {
        const float p = sums[r].factor(z[r][n], highest);
        sums[r].weights += p;
        BAMTRAIN_UNROLL
        for (int w = 0; w < 4; ++w) {
          sums[r].values[2 * w] += p * device::low_bf16(v[n].w[w]);
          sums[r].values[2 * w + 1] += p * device::high_bf16(v[n].w[w]);
        }
      }
    }
  }

  BAMTRAIN_UNROLL
  for (int r = 0; r < R; ++r) {
    BAMTRAIN_UNROLL
    for (int distance = kLanes; distance < 32; distance *= 2) sums[r].join(distance);
    float* const own = sums_of_warps + (l.warp * R + r) * kRow;
    if (l.lane < kLanes && has_chunk) {
      BAMTRAIN_UNROLL
      for (int c = 0; c < 8; ++c) own[column + c] = sums[r].values[c];
    }
    if (l.lane == 0) {
      own[D] = sums[r].weights;
      own[D + 1] = sums[r].largest;
    }
  }
  device::barrier();
  const int thread = 32 * l.warp + l.lane;
  for (int n = thread; n < R * kRow; n += kThreads) {
    const int r = n / kRow, c = n % kRow;
    if (r >= heads) break;
    const float* const of_row = sums_of_warps + r * kRow;
    float largest = kMinusInfinity, sum = 0;
    for (int w = 0; w < kDecodeWarps; ++w) {
      largest = fmaxf(largest, of_row[w * R * kRow + D + 1]);
    }
    for (int w = 0; w < kDecodeWarps; ++w) {
      const float* const of_warp = of_row + w * R * kRow;
      if (c <= D) sum += of_warp[c] * DecodedSums<8>::factor(of_warp[D + 1], largest);
    }
    const int64_t head = static_cast<int64_t>(b) * a.H + h0 + r;
    partial[(head * pieces + piece) * kRow + c] = c <= D ? sum : largest;
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

template <int D, int R>
LaunchStatus launch_pieces(const AttentionInputs<bf16>& a, float* partial, Stream stream) {
  const int groups = (a.H / a.K + R - 1) / R;
  const Dim3 grid = {static_cast<uint32_t>(attention_decode_pieces(a.T)),
                     static_cast<uint32_t>(a.K * groups), static_cast<uint32_t>(a.B)};
  return device::launch(attention_decode_piece<D, R>, grid, {kThreads, 1, 1}, 0, stream,
                        FusedInputs(a), partial);
}

template <int D>
LaunchStatus decode(const AttentionForward<bf16>& f, float* partial, Stream stream) {
  const AttentionInputs<bf16>& a = f.in;
  const int group = a.H / a.K;
  const LaunchStatus status = group == 1   ? launch_pieces<D, 1>(a, partial, stream)
                              : group == 2 ? launch_pieces<D, 2>(a, partial, stream)
                                           : launch_pieces<D, 4>(a, partial, stream);
  if (!status.ok()) return status;
  return device::launch(attention_decode_joined<D>,
                        Dim3{static_cast<uint32_t>(a.H), static_cast<uint32_t>(a.B), 1},
                        {kThreads, 1, 1}, 0, stream, f.out, f.saved.level, partial,
                        attention_decode_pieces(a.T), a.formed.first, a.T);
}

}  // namespace

LaunchStatus attention_decode(const AttentionForward<bf16>& f, float* partial, Stream stream) {
  if (const char* why = refusal(f)) return device::refused(why);
  if (const char* why = fused_refusal(f.in)) return device::refused(why);
  if (!decodes(f.in)) return device::refused("attention: to decode, one query by softmax");
  if (partial == nullptr) return device::refused("attention: to decode, partial is missing");
  return of_head_dim(f.in.D, [&]<int D>() {
    if (!reads_content(f.in)) return decode<D>(f, partial, stream);
    return with_content(f.in, stream, content_biases_of<D>,
                        [&](const AttentionInputs<bf16>& in, const QueryPart& part) {
                          return decode<D>(of_part(f, in, part), partial, stream);
                        });
  });
}

}  // namespace bamtrain::kernels

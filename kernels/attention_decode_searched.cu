// One query of each text by a normalizer that searches its level: pieces of keys leave their
// logits, a block for each row searches among these and makes them weights, and pieces of values,
// of which those without weight are not read, are summed and joined. A logit is 4 bytes where a key
// and its value have 4 D.

#include "attention_decode.cuh"
#include "attention_reference.cuh"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

constexpr int kSearchWarps = 16, kSearchThreads = 32 * kSearchWarps;

/// logits (B, H, T), of the keys that query i sees. Launch as KeyPiece says.
template <int D, int R>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kPieceBlocks<R>)
    attention_decode_logits(AttentionInputs<bf16> a, float* logits) {
  using Piece = KeyPiece<D, R>;
  constexpr int kAhead = Piece::kAhead;
  const Piece own(a);
  const DecodedQueries<D, R> queries(a, own, 1.0f);
  own.for_keys([&](const int(&keys)[kAhead], const bool(&inside)[kAhead]) {
    Words k[kAhead];
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) k[n] = own.chunk_of(a.k, keys[n]);
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) {
      float z[R];
      queries.logits(z, a, own, keys[n], k[n]);
      if (own.l.lane % Piece::kLanes != 0 || !inside[n]) continue;
      BAMTRAIN_UNROLL
      for (int r = 0; r < R; ++r) {
        if (r < own.heads) logits[own.row(a, r) + keys[n]] = z[r];
      }
    }
  });
}

/// In place of the logits of a row its weights, which add up to 1, and `saved`. Launch with grid
/// (H, B) and kSearchThreads threads.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kSearchThreads)
    attention_decode_weights(AttentionInputs<bf16> a, float* logits, SavedRows saved) {
  BAMTRAIN_SHARED(RowSearch::Sums, of_warps, kSearchWarps);
  BAMTRAIN_SHARED(float, scratch_of_sum, kSearchWarps);
  BAMTRAIN_SHARED(float, scratch_of_smallest, kSearchWarps);
  const int thread = static_cast<int>(device::thread_index().x);
  const int h = static_cast<int>(device::block_index().x);
  const int b = static_cast<int>(device::block_index().y);
  const int i = a.formed.first, first = first_of(a, b, i);
  const int64_t row = row_of(a, b, h, i);
  float* const z = logits + (row - i);
  const WeightForm form = weight_form(a.normalizer, h);
  Selection selection;
  RowSearch search(a.normalizer, form, h, i, i - first + 1, a.T, &selection);
  for (int passes = 1; !search.done(); ++passes) {
    with_weight_form(form, [&]<WeightForm kForm>() {
      search.template accumulate<kForm, true>([&](const auto& add) {
        for (int j = first + thread; j <= i; j += kSearchThreads) add(z[j], j);
      });
    });
    search.template join<32>();
    search.template join_warps<kSearchWarps>(of_warps, thread);
    search.template advance<true>(passes);
  }
  const RowWeights weights = search.weights();
  const NormalizerTraits traits = traits_of(a.normalizer.kind);
  float sum = 0, smallest = INFINITY;  // of the logits that topk keeps
  for (int j = first + thread; j <= i; j += kSearchThreads) {
    const float logit = z[j], p = weight_of(a.normalizer, weights, h, logit, j).p;
    if (traits.last && !weights.drops(logit, j)) smallest = fminf(smallest, logit);
    sum += p;
    z[j] = p;
  }
  sum = block_sum(sum, scratch_of_sum);
  smallest = -block_max(-smallest, scratch_of_smallest);
  const float factor = weights.factor_of(form, sum);
  for (int j = first + thread; j <= i; j += kSearchThreads) z[j] *= factor;
  if (thread != 0) return;
  saved.level[row] = weights.level_of(form, sum);
  if (traits.threshold) {
    saved.threshold[row] = traits.last ? weights.nan_or(smallest) : search.threshold;
  }
  if (traits.last) saved.last[row] = weights.last();
}

/// partial (B, H, pieces, D): sums of weighted values. Launch as KeyPiece says.
template <int D, int R>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kPieceBlocks<R>)
    attention_decode_values(AttentionInputs<bf16> a, const float* weights, float* partial) {
  using Piece = KeyPiece<D, R>;
  constexpr int kAhead = Piece::kAhead;
  BAMTRAIN_SHARED(float, sums_of_warps, kDecodeWarps* R* D);
  const Piece own(a);
  const Lane& l = own.l;
  float sums[R][8] = {};
  own.for_keys([&](const int(&keys)[kAhead], const bool(&inside)[kAhead]) {
    float p[kAhead][R];
    Words v[kAhead];
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) {
      bool any = false;
      BAMTRAIN_UNROLL
      for (int r = 0; r < R; ++r) {
        p[n][r] = inside[n] ? weights[own.row(a, r) + keys[n]] : 0.0f;
        any = any || p[n][r] != 0.0f;
      }
      v[n] = any ? own.chunk_of(a.v, keys[n]) : Words{};
    }
    BAMTRAIN_UNROLL
    for (int n = 0; n < kAhead; ++n) {
      BAMTRAIN_UNROLL
      for (int r = 0; r < R; ++r) add_weighted(sums[r], p[n][r], v[n]);
    }
  });
  BAMTRAIN_UNROLL
  for (int r = 0; r < R; ++r) {
    BAMTRAIN_UNROLL
    for (int c = 0; c < 8; ++c) {
      BAMTRAIN_UNROLL
      for (int distance = Piece::kLanes; distance < 32; distance *= 2) {
        sums[r][c] += device::shuffle_xor(device::kWholeWarp, sums[r][c], distance);
      }
      if (l.lane < Piece::kLanes && own.has_chunk) {
        sums_of_warps[(l.warp * R + r) * D + own.column + c] = sums[r][c];
      }
    }
  }
  device::barrier();
  for (int n = 32 * l.warp + l.lane; n < R * D; n += kThreads) {
    const int r = n / D, c = n % D;
    if (r >= own.heads) break;
    const int64_t head = static_cast<int64_t>(own.b) * a.H + own.h0 + r;
    partial[(head * own.pieces + own.piece) * D + c] =
        sum_in_order(sums_of_warps + n, kDecodeWarps, R * D);
  }
}

/// out (B, 1, H, D) of query i. Launch with grid (H, B) and kThreads threads.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads)
    attention_decode_sum(Rows<bf16> out, const float* partial, int pieces, int i) {
  static_assert(D <= kThreads);
  const int c = static_cast<int>(device::thread_index().x);
  const int h = static_cast<int>(device::block_index().x);
  const int b = static_cast<int>(device::block_index().y);
  if (c >= D) return;
  const int64_t head = static_cast<int64_t>(b) * device::grid_size().x + h;
  store_one(row_of(out, b, i, h) + c, sum_in_order(partial + head * pieces * D + c, pieces, D));
}

}  // namespace

template <int D>
LaunchStatus attention_decode_searched(const AttentionForward<bf16>& f, float* partial,
                                       float* logits, Stream stream) {
  const AttentionInputs<bf16>& a = f.in;
  const Dim3 rows = {static_cast<uint32_t>(a.H), static_cast<uint32_t>(a.B), 1};
  LaunchStatus status = of_pieces(a, [&]<int R>(Dim3 grid) {
    return device::launch(attention_decode_logits<D, R>, grid, {kThreads, 1, 1}, 0, stream, a,
                          logits);
  });
  if (!status.ok()) return status;
  status = device::launch(attention_decode_weights, rows, {kSearchThreads, 1, 1}, 0, stream, a,
                          logits, f.saved);
  if (!status.ok()) return status;
  status = of_pieces(a, [&]<int R>(Dim3 grid) {
    return device::launch(attention_decode_values<D, R>, grid, {kThreads, 1, 1}, 0, stream, a,
                          static_cast<const float*>(logits), partial);
  });
  if (!status.ok()) return status;
  return device::launch(attention_decode_sum<D>, rows, {kThreads, 1, 1}, 0, stream, f.out,
                        static_cast<const float*>(partial), attention_decode_pieces(a.T),
                        a.formed.first);
}

#define BAMTRAIN_SEARCHED(D)                                                                \
  template LaunchStatus attention_decode_searched<D>(const AttentionForward<bf16>&, float*, \
                                                     float*, Stream);
BAMTRAIN_SEARCHED(16)
BAMTRAIN_SEARCHED(32)
BAMTRAIN_SEARCHED(48)
BAMTRAIN_SEARCHED(64)
BAMTRAIN_SEARCHED(80)
BAMTRAIN_SEARCHED(96)
BAMTRAIN_SEARCHED(128)
#undef BAMTRAIN_SEARCHED

}  // namespace bamtrain::kernels

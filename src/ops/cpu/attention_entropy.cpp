// The entropy of attention's rows, online: with m the largest logit so far, the sums of e^(z - m)
// and of (z - m) e^(z - m). H = log(first) - second / first, two terms of one sign.

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/biases.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

/// Of one tile of queries, (kQ) each.
struct Running {
  float *maximum, *sum, *weighted;
};

/// Adds the keys of one tile, whose content scores it reads.
template <class Stage>
void add_tile(const float* tile, const Running& run, const Stage& biases, const Sight& sight,
              int64_t i0, int64_t i1, int64_t j0, bool all_visible) {
  // The bias itself, never as a factor of exp(z).
  using OfKeys = typename Stage::template OfKeys<ScaleMode::both>;
  for (int64_t i = i0; i < i1; ++i) {
    const int64_t r = i - i0;
    const float* row = tile + r * kStride + kMargin;
    const float* of_keys = biases.of_keys(i, j0);
    const auto of_row = biases.of_row(r);
    Vec z[kV];
    Vec highest = simd::splat(kMinusInfinity);
    for (int64_t v = 0; v < kV; ++v) {
      const int64_t j = v * simd::kWidth;
      z[v] = simd::load(row + j) + OfKeys(of_keys + j, of_row).bias();
      if (!all_visible) {
        z[v] = visible(j0 + j, sight.first(i), sight.last(i)) ? z[v] : simd::splat(kMinusInfinity);
      }
      highest = simd::max(highest, z[v]);
    }
    const float before = run.maximum[r], m = std::max(before, simd::maximum(highest));
    if (m == kMinusInfinity) continue;  // no key seen yet, or NaN alone: 0 / 0 in the end
    if (m > before && run.sum[r] > 0) {
      const float keep = std::exp(before - m);
      run.weighted[r] = (run.weighted[r] + run.sum[r] * (before - m)) * keep;
      run.sum[r] *= keep;
    }
    run.maximum[r] = m;
    Vec total{}, weighted{};
    for (int64_t v = 0; v < kV; ++v) {
      const Vec below = z[v] == kMinusInfinity ? Vec{} : z[v] - m;
      const Vec p = z[v] == kMinusInfinity ? Vec{} : simd::exp(below);
      total += p;
      weighted += p * below;
    }
    run.sum[r] += simd::sum(total);
    run.weighted[r] += simd::sum(weighted);
  }
}

/// The queries in `queries` of the query heads in `heads`, which read one key head.
template <class A, class Stage>
void entropy_part(Tensor entropy, const Attention& a, float* scratch, int64_t b, Span heads,
                  Span queries) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const float root = 1 / a.content_divisor<float>();
  const Sight sight(a, b);
  if (queries.begin == queries.end) return;
  Pieces pieces(scratch);
  float* keys = pieces.take(Tp * Dp);
  float* packed = pieces.take(Tp * Dp);
  const BiasMemory bias_memory(pieces, T);
  float* query = pieces.take(kQ * Dp);
  const Running run{pieces.take(kQ), pieces.take(kQ), pieces.take(kQ)};
  float* tile = pieces.take(kTile);

  const int64_t from = sight.first_tile(queries.begin), to = sight.end(queries.end);  // keys
  pack_rows<A>(packed + from * Dp, a.k, b, kh, from, to, Dp, 1);
  transpose_tiles(keys, packed, from, to, D, Dp);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    const Stage biases(a, b, h, bias_memory);
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += kQ) {
      const int64_t i1 = std::min(i0 + kQ, T), rows = i1 - i0;
      pack_rows<A>(query, a.q, b, h, i0, i1, Dp, root);
      std::fill_n(run.maximum, kQ, kMinusInfinity);
      std::fill_n(run.sum, kQ, 0.0f);
      std::fill_n(run.weighted, kQ, 0.0f);
      const int64_t j_first = sight.first_tile(i0), j_end = sight.end(i1);
      biases.set_tile(i0, i1, j_first, j_end);
      for (int64_t j0 = j_first; j0 < j_end; j0 += kK) {
        tile::product<false>(rows, kK, D, {query, Dp, 1}, keys + j0 * D, kK, tile + kMargin,
                             kStride);
        add_tile(tile, run, biases, sight, i0, i1, j0, sight.whole(i0, i1, j0));
      }
      float* const to_rows = entropy.ptr<float>() + (b * H + h) * T + i0;
      for (int64_t r = 0; r < rows; ++r) {
        to_rows[r] = std::log(run.sum[r]) - run.weighted[r] / run.sum[r];
      }
    }
  }
}

}  // namespace

void cpu_attention_entropy(Tensor entropy, const Attention& a, const AttentionScratch& s) {
  require(!a.scale.t, "logits without a scale");
  if (a.mix) return cpu_attention_mix_entropy(entropy, a, s);
  if (reads_content(a.bias)) return cpu_attention_entropy_of_content(entropy, a, s);
  dispatch_activation(a.q.dtype, [&]<class A>() {
    dispatch_bias(a, [&]<class Stage>() {
      for_query_tasks(a, [&](int64_t slot, int64_t b, Span heads, Span queries) {
        entropy_part<A, Stage>(entropy, a, s.of_slot(slot), b, heads, queries);
      });
    });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

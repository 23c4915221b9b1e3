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

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// The running softmax of one tile of queries.
struct Running {
  float *out, *maximum, *sum;  // (kQ, Dp), (kQ), (kQ)
};

/// Turns the content scores of one tile into probabilities relative to the running maximum and
/// rescales what the rows have gathered so far.
template <ScaleMode kScale, class Stage>
void online_softmax(float* tile, const Running& run, const Stage& biases, const float* t,
                    const Sight& sight, int64_t i0, int64_t i1, int64_t j0, int64_t Dp,
                    bool all_visible) {
  using OfKeys = typename Stage::template OfKeys<kScale>;
  for (int64_t i = i0; i < i1; ++i) {
    const int64_t r = i - i0;
    float* row = tile + r * kStride + kMargin;
    const float* of_keys = biases.of_keys(i, j0);
    const auto of_row = biases.of_row(r);
    const Vec scale = simd::splat(kScale == ScaleMode::none ? 1.0f : t[i]);
    Vec z[kV];
    Vec highest = simd::splat(kMinusInfinity);
    for (int64_t v = 0; v < kV; ++v) {
      const int64_t j = v * simd::kWidth;
      const OfKeys b(of_keys + j, of_row);
      z[v] = logits<kScale>(simd::load(row + j), b.bias(), scale);
      if (!all_visible) {
        z[v] = visible(j0 + j, sight.first(i), sight.last(i)) ? z[v] : simd::splat(kMinusInfinity);
      }
      highest = simd::max(highest, z[v]);
    }
    const float m = std::max(run.maximum[r], simd::maximum(highest));
    Vec total{};
    // The row sees no key of this tile, nor of any before it, or such as are NaN: maxima pass over
    // NaN, so that beside a number it reaches the row by its probability, and alone by its logit.
    if (m == kMinusInfinity) [[unlikely]] {
      for (int64_t v = 0; v < kV; ++v) {
        const Vec p = z[v] == kMinusInfinity ? Vec{} : z[v];
        simd::store(row + v * simd::kWidth, p);
        total += p;
      }
      run.sum[r] += simd::sum(total);
      continue;
    }
    for (int64_t v = 0; v < kV; ++v) {
      const OfKeys b(of_keys + v * simd::kWidth, of_row);
      Vec p = b.weighted(simd::exp(z[v] - m));
      if (!all_visible) p = z[v] == kMinusInfinity ? Vec{} : p;
      simd::store(row + v * simd::kWidth, p);
      total += p;
    }
    const float keep = run.maximum[r] == m ? 1.0f : std::exp(run.maximum[r] - m);
    run.maximum[r] = m;
    run.sum[r] = run.sum[r] * keep + simd::sum(total);
    if (keep != 1.0f) {
      float* o = run.out + r * Dp;
      for (int64_t c = 0; c < Dp; c += simd::kWidth) simd::store(o + c, simd::load(o + c) * keep);
    }
  }
}

/// The queries in `queries` of the query heads in `heads`, which read one key head.
template <class A, class Stage, ScaleMode kScale>
void forward_part(Tensor out, Tensor level, const Attention& a, float* scratch, int64_t b,
                  Span heads, Span queries) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const float root = 1 / a.content_divisor<float>();
  const Sight sight(a, b);
  if (queries.begin == queries.end) return;
  Pieces pieces(scratch);
  float* keys = pieces.take(Tp * Dp);
  float* values = pieces.take(Tp * Dp);
  const BiasMemory bias_memory(pieces, T);
  float* query = pieces.take(kQ * Dp);
  const Running run{pieces.take(kQ * Dp), pieces.take(kQ), pieces.take(kQ)};
  float* tile = pieces.take(kTile);

  const int64_t from = sight.first_tile(queries.begin), to = sight.end(queries.end);  // keys
  pack_rows<A>(values + from * Dp, a.k, b, kh, from, to, Dp, 1);  // on their way to `keys`
  transpose_tiles(keys, values, from, to, D, Dp);
  pack_rows<A>(values + from * Dp, a.v, b, kh, from, to, Dp, 1);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    const Stage biases(a, b, h, bias_memory);
    const float* t = kScale == ScaleMode::none ? nullptr : a.scale.t.ptr<float>() + (b * H + h) * T;
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += kQ) {
      const int64_t i1 = std::min(i0 + kQ, T), rows = i1 - i0;
      pack_rows<A>(query, a.q, b, h, i0, i1, Dp, root);
      std::fill_n(run.out, kQ * Dp, 0.0f);
      std::fill_n(run.maximum, kQ, kMinusInfinity);
      std::fill_n(run.sum, kQ, 0.0f);
      const int64_t j_first = sight.first_tile(i0), j_end = sight.end(i1);
      biases.set_tile(i0, i1, j_first, j_end);
      for (int64_t j0 = j_first; j0 < j_end; j0 += kK) {
        tile::product<false>(rows, kK, D, {query, Dp, 1}, keys + j0 * D, kK, tile + kMargin,
                             kStride);
        online_softmax<kScale>(tile, run, biases, t, sight, i0, i1, j0, Dp,
                               sight.whole(i0, i1, j0));
        const int64_t live = std::min(kK, j_end - j0);
        tile::product<true>(rows, Dp, live, {tile + kMargin, kStride, 1}, values + j0 * Dp, Dp,
                            run.out, Dp);
      }
      for (int64_t r = 0; r < rows; ++r) {
        const float inverse = 1 / run.sum[r];
        for (int64_t c = 0; c < Dp; ++c) run.out[r * Dp + c] *= inverse;
        level.ptr<float>()[(b * H + h) * T + i0 + r] = run.maximum[r] + std::log(run.sum[r]);
      }
      unpack_rows<A>(out, b, h, i0, i1, run.out, Dp, 1);
    }
  }
}

}  // namespace

void cpu_attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                           const AttentionScratch& s) {
  dispatch_activation(a.q.dtype, [&]<class A>() {
    dispatch_form(a, [&]<class Stage, ScaleMode kScale>() {
      for_query_tasks(a, [&](int64_t slot, int64_t b, Span heads, Span queries) {
        forward_part<A, Stage, kScale>(out, saved.level, a, s.of_slot(slot), b, heads, queries);
      });
    });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

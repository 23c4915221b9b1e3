#include "core/parallel.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/attention_partials.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/biases.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

/// Reads the content scores in `p` and dP in `dz`; leaves p and ds = t dz there, and adds to
/// `to_scale`, of its rows by position, and to the bias's gradients. db (dz, or ds with
/// ScaleMode::both) is what those receive; where it differs from ds, what is of the whole tile is
/// added before the factor t is applied (see backward_part).
template <ScaleMode kScale, class Stage>
void softmax_adjoint(float* p, float* dz, float* to_scale, typename Stage::Adjoint& to_bias,
                     const Stage& biases, const float* t, const float* lse, const float* D_i,
                     const Sight& sight, int64_t i0, int64_t i1, int64_t j0, bool all_visible) {
  typename Stage::Adjoint::Tile tile;
  for (int64_t i = i0; i < i1; ++i) {
    float* p_row = p + (i - i0) * kStride + kMargin;
    float* dz_row = dz + (i - i0) * kStride + kMargin;
    const float* of_keys = biases.of_keys(i, j0);
    const auto of_row = biases.of_row(i - i0);
    const Vec scale = simd::splat(kScale == ScaleMode::none ? 1.0f : t[i]);
    const bool one = sight.alone(i);  // one visible key: p = 1 and dz = 0 exactly
    const float alone = one ? 0.0f : 1.0f;
    Vec dscale{};
    tile.begin_row();
    for (int64_t v = 0; v < kV; ++v) {
      const int64_t j = v * simd::kWidth;
      const Vec s = simd::load(p_row + j);
      const typename Stage::template OfKeys<kScale> of_bias(of_keys + j, of_row);
      const Vec b = of_bias.bias();
      const Vec z = logits<kScale>(s, b, scale);
      Vec prob = of_bias.weighted(simd::exp(z - lse[i]));
      if (!all_visible) {
        prob = visible(j0 + j, sight.first(i), sight.last(i)) ? (one ? simd::splat(1.0f) : prob)
                                                              : Vec{};
      }
      Vec d = prob * (simd::load(dz_row + j) - D_i[i]) * alone;
      if constexpr (kScale == ScaleMode::content) dscale += d * s;
      if constexpr (kScale == ScaleMode::both) {
        dscale += d * (s + b);
        d *= scale;
      }
      simd::store(p_row + j, prob);
      simd::store(dz_row + j, d);
      tile.add(v, of_bias, d);
    }
    if constexpr (kScale != ScaleMode::none) to_scale[i] += simd::sum(dscale);
    to_bias.end_row(tile, dz_row, i, j0, biases);
  }
  to_bias.end_tile(tile, j0);
}

/// One task of the backward pass: the query heads in `heads`, which read one key head, and the
/// tiles of `queries` by `keys`. `for_keys` writes dk and dv and needs all queries that see the
/// keys, and the gradient of the keys' sums; `for_queries` writes dq, dscale, the gradient of the
/// queries' sums and the partial tables and needs all keys that the queries see.
struct Part {
  int64_t b = 0;
  Span heads, queries, keys;
  bool for_keys = true, for_queries = true;
};

/// D_i = <dout_i, out_i> for the rows in `queries`; dout is packed.
template <class A>
void row_products(float* D_i, const float* d_o, float* o_tile, const Tensor& out, int64_t b,
                  int64_t h, Span queries, int64_t Dp) {
  for (int64_t i0 = queries.begin; i0 < queries.end; i0 += kQ) {
    const int64_t i1 = std::min(i0 + kQ, queries.end);
    pack_rows<A>(o_tile, out, b, h, i0, i1, Dp, 1);
    for (int64_t i = i0; i < i1; ++i) {
      Vec sum{};
      for (int64_t c = 0; c < Dp; c += simd::kWidth) {
        sum += simd::load(d_o + i * Dp + c) * simd::load(o_tile + (i - i0) * Dp + c);
      }
      D_i[i] = simd::sum(sum);
    }
  }
}

template <class A, class Stage, ScaleMode kScale>
void backward_part(const AttentionGradients& g, Tensor dout, Tensor out,
                   const AttentionSaved& saved, const Attention& a, const AttentionScratch& s,
                   int64_t slot, const Part& part) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = part.heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const auto [b, heads, queries, key_span, for_keys, for_queries] = part;
  if (queries.begin == queries.end || key_span.begin == key_span.end) return;
  const float root = 1 / a.content_divisor<float>();
  const Sight sight(a, b);
  Pieces pieces(s.of_slot(slot));
  float* keys = pieces.take(Tp * Dp);      // rows
  float* keys_t = pieces.take(Tp * Dp);    // transposed tiles
  float* values_t = pieces.take(Tp * Dp);  // transposed tiles
  float* dkeys = pieces.take(Tp * Dp);
  float* dvalues = pieces.take(Tp * Dp);
  float* query = pieces.take(Tp * Dp);
  float* dquery = pieces.take(Tp * Dp);
  float* d_o = pieces.take(Tp * Dp);
  float* o_tile = pieces.take(kQ * Dp);
  float* D_i = pieces.take(Tp);
  float* elsewhere = pieces.take(Tp);   // of what another task writes of rows
  float* other_keys = pieces.take(Tp);  // and of keys
  const BiasMemory bias_memory(pieces, T);
  float* p = pieces.take(kTile);
  float* dz = pieces.take(kTile);
  std::fill_n(dz, kTile, 0.0f);  // the margins stay zero

  const int64_t j_begin = std::max(key_span.begin, sight.first_tile(queries.begin));
  const int64_t j_end = std::max(j_begin, std::min(key_span.end, sight.end(queries.end)));
  const auto at = [Dp](float* rows, int64_t row) { return rows + row * Dp; };
  pack_rows<A>(at(keys, j_begin), a.v, b, kh, j_begin, j_end, Dp, 1);  // on the way to `values_t`
  transpose_tiles(values_t, keys, j_begin, j_end, D, Dp);
  pack_rows<A>(at(keys, j_begin), a.k, b, kh, j_begin, j_end, Dp, 1);
  transpose_tiles(keys_t, keys, j_begin, j_end, D, Dp);
  const int64_t key_rows = key_span.end - key_span.begin, query_rows = queries.end - queries.begin;
  if (for_keys) {
    std::fill_n(at(dkeys, key_span.begin), key_rows * Dp, 0.0f);
    std::fill_n(at(dvalues, key_span.begin), key_rows * Dp, 0.0f);
  }

  typename Stage::Adjoint to_bias(g.bias, a, s, nullptr);
  for (int64_t h = heads.begin; h < heads.end; ++h) {
    const float* row_lse = saved.level.ptr<float>() + (b * H + h) * T;
    const float* t = kScale == ScaleMode::none ? nullptr : a.scale.t.ptr<float>() + (b * H + h) * T;
    const TaskHead head = {b, h, queries, key_span, for_keys, for_queries, elsewhere, other_keys};
    float* const to_scale = kScale == ScaleMode::none ? nullptr : head.of_rows(g.dscale, a);
    to_bias.set_head(head);
    const Stage biases(a, b, h, bias_memory);
    pack_rows<A>(at(query, queries.begin), a.q, b, h, queries.begin, queries.end, Dp, root);
    pack_rows<A>(at(d_o, queries.begin), dout, b, h, queries.begin, queries.end, Dp, 1);
    row_products<A>(D_i, d_o, o_tile, out, b, h, queries, Dp);
    if (for_queries) std::fill_n(at(dquery, queries.begin), query_rows * Dp, 0.0f);

    for (int64_t n = 0; n < parts_of(T); ++n) {
      const Span rows_of_part = query_part(T, n);
      const int64_t i_begin = std::max(queries.begin, rows_of_part.begin);
      const int64_t i_end = std::min(queries.end, rows_of_part.end);
      const bool mine =
          for_queries && queries.begin <= rows_of_part.begin && rows_of_part.end <= queries.end;
      to_bias.set_part(n, mine);
      for (int64_t i0 = i_begin; i0 < i_end; i0 += kQ) {
        const int64_t i1 = std::min(i0 + kQ, T), rows = i1 - i0;
        const float* q = query + i0 * Dp;
        const float* go = d_o + i0 * Dp;
        const int64_t j_first = std::max(key_span.begin, sight.first_tile(i0));
        const int64_t end = sight.end(i1);
        if (j_first >= end) continue;
        biases.set_tile(i0, i1, std::min(j_first, i0), end);
        for (int64_t j0 = j_first; j0 < std::min(end, key_span.end); j0 += kK) {
          tile::product<false>(rows, kK, D, {q, Dp, 1}, keys_t + j0 * D, kK, p + kMargin, kStride);
          tile::product<false>(rows, kK, D, {go, Dp, 1}, values_t + j0 * D, kK, dz + kMargin,
                               kStride);
          softmax_adjoint<kScale>(p, dz, to_scale, to_bias, biases, t, row_lse, D_i, sight, i0, i1,
                                  j0, sight.whole(i0, i1, j0));
          if (for_queries) to_bias.add_tile(dz, rows, i0, j0);
          if constexpr (kScale == ScaleMode::content) {
            for (int64_t r = 0; r < rows; ++r) {
              float* row = dz + r * kStride + kMargin;
              for (int64_t c = 0; c < kK; c += simd::kWidth) {
                simd::store(row + c, simd::load(row + c) * t[i0 + r]);
              }
            }
          }
          const int64_t live = std::min(kK, end - j0);
          if (for_keys) {
            tile::product<true>(live, Dp, rows, {p + kMargin, 1, kStride}, go, Dp, at(dvalues, j0),
                                Dp);
            tile::product<true>(live, Dp, rows, {dz + kMargin, 1, kStride}, q, Dp, at(dkeys, j0),
                                Dp);
          }
          if (for_queries) {
            tile::product<true>(rows, Dp, live, {dz + kMargin, kStride, 1}, keys + j0 * Dp, Dp,
                                at(dquery, i0), Dp);
          }
        }
      }
    }
    if (for_queries) {
      unpack_rows<A>(g.dq, b, h, queries.begin, queries.end, at(dquery, queries.begin), Dp, root);
    }
  }
  if (for_keys) {  // q carried the content scale
    unpack_rows<A>(g.dk, b, kh, key_span.begin, key_span.end, at(dkeys, key_span.begin), Dp, 1);
    unpack_rows<A>(g.dv, b, kh, key_span.begin, key_span.end, at(dvalues, key_span.begin), Dp, 1);
  }
}

}  // namespace

void cpu_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                            const AttentionSaved& saved, const Attention& a,
                            const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2];
  const int64_t group = H / K, parts = parts_of(T);
  // Products of a tile: five for keys and queries together, four and three for each alone.
  constexpr double kApart = 1.1 * 7 / 5;
  dispatch_activation(a.q.dtype, [&]<class A>() {
    dispatch_form(a, [&]<class Stage, ScaleMode kScale>() {
      const auto run = [&](int64_t slot, const Part& part) {
        backward_part<A, Stage, kScale>(g, dout, out, saved, a, s, slot, part);
      };
      const auto readers = [group](int64_t kh) { return Span{kh * group, (kh + 1) * group}; };
      if (parts > 1 && worth_splitting(B * K, kApart)) {
        const int64_t key_tasks = B * K * parts;
        parallel_for_slots(key_tasks + B * H * parts, [&](int64_t n, int64_t slot) {
          if (n < key_tasks) {
            const Span keys = key_part(T, n % parts);
            const int64_t first_query = a.causal() ? keys.begin : 0;  // that sees any of them
            run(slot, {n / parts / K, readers(n / parts % K), {first_query, T}, keys, true, false});
          } else {
            const int64_t head = (n - key_tasks) / parts, h = head % H;
            const Span queries = query_part(T, (n - key_tasks) % parts);
            run(slot, {head / H, {h, h + 1}, queries, {0, T}, false, true});
          }
        });
      } else {
        parallel_for_slots(B * K, [&](int64_t n, int64_t slot) {
          run(slot, {n / K, readers(n % K), {0, T}, {0, T}, true, true});
        });
      }
    });
  });
  join_partials(g.bias, a, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

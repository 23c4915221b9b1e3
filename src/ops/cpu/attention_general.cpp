// The general path of the CPU attention: any bias with any normalizer. A task takes some rows of
// queries at a time and keeps their logits of all keys, O(T); stages run one after another on whole
// rows (bias, normalizer) and on tiles (products). What a row gives to dz is then exact: D_i comes
// from the row's own weights and dP. Tiles without any weight are marked and skipped.

#include <algorithm>

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_partials.h"
#include "ops/cpu/attention_row_sums.h"
#include "ops/cpu/attention_strips.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

template <class A>
void forward_part(Tensor out, const AttentionSaved& saved, const Attention& a, float* scratch,
                  int64_t b, Span heads, Span queries, RowBias& bias, RowNormalizer& normalizer) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const float root = 1 / a.content_divisor<float>();
  Pieces pieces(scratch);
  float* keys = pieces.take(Tp * Dp);
  float* values = pieces.take(Tp * Dp);
  float* query = pieces.take(kQ * Dp);
  float* sum = pieces.take(kQ * Dp);
  float* z = pieces.take(strip_floats(T));

  const Sight sight(a, b);
  const int64_t from = sight.first_tile(queries.begin), to = sight.end(queries.end);
  pack_rows<A>(values + from * Dp, a.k, b, kh, from, to, Dp, 1);  // on their way to `keys`
  transpose_tiles(keys, values, from, to, D, Dp);
  pack_rows<A>(values + from * Dp, a.v, b, kh, from, to, Dp, 1);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    bias.set_head(b, h);
    normalizer.set_head(h);
    const Factors t(a, b, h);
    const LiveTiles live(saved.live, b, h);
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += strip_rows(T)) {
      const Strip s(a, b, i0, std::min(i0 + strip_rows(T), queries.end));
      pack_rows<A>(query, a.q, b, h, s.i0, s.i1, Dp, root);
      bias.set_tile(s.i0, s.i1, s.from, s.end);
      live.clear(s.i0, s.i1);
      s.for_tiles([&](int64_t j0) {
        tile::product<false>(s.rows(), kK, D, {query, Dp, 1}, keys + j0 * D, kK, s.at(z, s.i0, j0),
                             strip_stride(T));
      });
      for (int64_t i = s.i0; i < s.i1; ++i) {
        const RowSpan row = s.row(i);
        float* const own = s.at(z, i, row.first);
        bias.add(own, row, t.of_content(i), t.of_bias(i));
        s.fill_beside(z, row, row::kMinusInfinity);
        SavedRow of_row;
        normalizer.weights(own, row.n, of_row);
        of_row.last += static_cast<int32_t>(row.first);
        save_row(saved, (b * H + h) * T + i, of_row);
        s.fill_beside(z, row, 0);
        s.for_tiles([&](int64_t j0) {
          // NaN is weight too.
          if (!(row::total(s.at(z, i, j0), kK) <= 0)) live.mark(i, j0);
        });
      }
      std::fill_n(sum, s.rows() * Dp, 0.0f);
      s.for_tiles([&](int64_t j0) {
        if (!live.any(s.i0, s.i1, j0)) return;
        tile::product<true>(s.rows(), Dp, std::min(kK, s.end - j0),
                            {s.at(z, s.i0, j0), strip_stride(T), 1}, values + j0 * Dp, Dp, sum, Dp);
      });
      unpack_rows<A>(out, b, h, s.i0, s.i1, sum, Dp, 1);
    }
  }
}

/// The query heads in `heads`, which read one key head.
template <class A>
void backward_part(const AttentionGradients& g, Tensor dout, const AttentionSaved& saved,
                   const Attention& a, float* scratch, int64_t b, Span heads, RowBias& bias,
                   RowNormalizer& normalizer) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const int64_t S = strip_stride(T);
  const float root = 1 / a.content_divisor<float>();
  const NormalizerTraits traits = traits_of(a.normalizer.form.kind);
  Pieces pieces(scratch);
  float* keys = pieces.take(Tp * Dp);      // rows
  float* keys_t = pieces.take(Tp * Dp);    // transposed tiles
  float* values_t = pieces.take(Tp * Dp);  // transposed tiles
  float* dkeys = pieces.take(Tp * Dp);
  float* dvalues = pieces.take(Tp * Dp);
  float* query = pieces.take(kQ * Dp);
  float* dquery = pieces.take(kQ * Dp);
  float* d_o = pieces.take(kQ * Dp);
  float* p = pieces.take(strip_floats(T));
  float* u = pieces.take(strip_floats(T));
  float* dz = pieces.take(strip_floats(T));

  pack_rows<A>(keys, a.v, b, kh, 0, T, Dp, 1);  // on the way to `values_t`
  transpose_tiles(values_t, keys, 0, T, D, Dp);
  pack_rows<A>(keys, a.k, b, kh, 0, T, Dp, 1);
  transpose_tiles(keys_t, keys, 0, T, D, Dp);
  std::fill_n(dkeys, T * Dp, 0.0f);
  std::fill_n(dvalues, T * Dp, 0.0f);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    bias.set_head(b, h);
    bias.clear_head();
    normalizer.set_head(h);
    const Factors t(a, b, h);
    const LiveTiles live(saved.live, b, h);
    const int64_t of_head = (b * H + h) * T;
    for (int64_t part = 0; part < parts_of(T); ++part) {
      bias.set_part(part);
      const Span queries = query_part(T, part);
      for (int64_t i0 = queries.begin; i0 < queries.end; i0 += strip_rows(T)) {
        const Strip s(a, b, i0, std::min(i0 + strip_rows(T), queries.end));
        // f(key, whether its tile has weight) for the tiles whose scores have a gradient.
        const auto for_scored = [&](auto&& f) {
          s.for_tiles([&](int64_t j0) {
            const bool has_weight = live.any(s.i0, s.i1, j0);
            if (has_weight || bias.reads_scores()) f(j0, has_weight);
          });
        };
        const auto for_dead = [&](auto&& f) {
          s.for_tiles([&](int64_t j0) {
            if (!live.any(s.i0, s.i1, j0)) f(j0);
          });
        };
        pack_rows<A>(query, a.q, b, h, s.i0, s.i1, Dp, root);
        pack_rows<A>(d_o, dout, b, h, s.i0, s.i1, Dp, 1);
        bias.set_tile(s.i0, s.i1, s.from, s.end);
        for_scored([&](int64_t j0, bool has_weight) {
          tile::product<false>(s.rows(), kK, D, {query, Dp, 1}, keys_t + j0 * D, kK,
                               s.at(p, s.i0, j0), S);
          if (!has_weight) return;
          tile::product<false>(s.rows(), kK, D, {d_o, Dp, 1}, values_t + j0 * D, kK,
                               s.at(dz, s.i0, j0), S);
        });
        for (int64_t i = s.i0; i < s.i1; ++i) {
          const RowSpan row = s.row(i);
          float* const own = s.at(p, i, row.first);
          float* const gradient = s.at(dz, i, row.first);
          bias.add(own, row, t.of_content(i), t.of_bias(i));
          for_dead([&](int64_t j0) {
            std::fill_n(s.at(p, i, j0), kK, row::kMinusInfinity);
            std::fill_n(s.at(dz, i, j0), kK, 0.0f);
          });
          s.fill_beside(p, row, row::kMinusInfinity);
          s.fill_beside(dz, row, 0);
          SavedRow of_row = saved_row(saved, of_head + i);
          of_row.last -= static_cast<int32_t>(row.first);
          normalizer.recall(own, s.at(u, i, row.first), row.n, of_row);
          s.fill_beside(p, row, 0);
          float dalpha = 0;
          if (row.n > 1 || !traits.constant_alone()) {
            dalpha = normalizer.adjoint(gradient, own, s.at(u, i, row.first), row.n);
          } else {  // one visible key: its weight is a constant
            if (traits.sums_to_one) *own = 1;
            *gradient = 0;
          }
          if (g.dalpha) g.dalpha.ptr<float>()[of_head + i] = dalpha;
          const bool scaled = t.t && t.on_bias;
          const float dt = bias.adjoint(gradient, row, t.of_content(i), t.of_bias(i), scaled);
          if (g.dscale) g.dscale.ptr<float>()[of_head + i] = dt;
        }
        std::fill_n(dquery, s.rows() * Dp, 0.0f);
        for_scored([&](int64_t j0, bool has_weight) {
          const int64_t keys_here = std::min(kK, s.end - j0);
          tile::product<true>(s.rows(), Dp, keys_here, {s.at(dz, s.i0, j0), S, 1}, keys + j0 * Dp,
                              Dp, dquery, Dp);
          if (!has_weight) return;
          tile::product<true>(keys_here, Dp, s.rows(), {s.at(p, s.i0, j0), 1, S}, d_o, Dp,
                              dvalues + j0 * Dp, Dp);
        });
        // dquery is sum dz k: with q it makes the content's part of dt, times t it is dq. It is
        // sum ds k, which is dq, of a bias that reads scores.
        for (int64_t i = s.i0; i < s.i1 && t.t && !bias.reads_scores(); ++i) {
          float *const q = query + (i - s.i0) * Dp, *const dq = dquery + (i - s.i0) * Dp;
          simd::Vec product{};
          for (int64_t c = 0; c < Dp; c += simd::kWidth) {
            product += simd::load(q + c) * simd::load(dq + c);
          }
          g.dscale.ptr<float>()[of_head + i] += simd::sum(product);
          row::scale(q, Dp, t.t[i]);
          row::scale(dq, Dp, t.t[i]);
        }
        bias.end_tile(dquery, root);
        for_scored([&](int64_t j0, bool) {
          tile::product<true>(std::min(kK, s.end - j0), Dp, s.rows(), {s.at(dz, s.i0, j0), 1, S},
                              query, Dp, dkeys + j0 * Dp, Dp);
        });
        unpack_rows<A>(g.dq, b, h, s.i0, s.i1, dquery, Dp, root);
      }
    }
    bias.end_head(keys, dkeys);
  }
  unpack_rows<A>(g.dk, b, kh, 0, T, dkeys, Dp, 1);  // q carried the content scale
  unpack_rows<A>(g.dv, b, kh, 0, T, dvalues, Dp, 1);
}

}  // namespace

int64_t general_forward_floats(int64_t T, int64_t D, const ContentShape& content) {
  return row_bias_floats(T, D, content) + 2 * simd::kWidth + 2 * padded_keys(T) * padded(D) +
         2 * kQ * padded(D) + most_strip_floats(T);
}
int64_t general_backward_floats(int64_t T, int64_t D, const ContentShape& content) {
  return row_bias_floats(T, D, content) + 2 * simd::kWidth + 5 * padded_keys(T) * padded(D) +
         3 * kQ * padded(D) + 3 * most_strip_floats(T);
}

void cpu_attention_general_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                                   const AttentionScratch& s) {
  dispatch_activation(a.q.dtype, [&]<class A>() {
    for_query_tasks(a, [&](int64_t slot, int64_t b, Span heads, Span queries) {
      if (queries.begin == queries.end) return;
      with_stages(a, s, slot, nullptr,
                  [&](RowBias& bias, RowNormalizer& normalizer, float* scratch) {
                    forward_part<A>(out, saved, a, scratch, b, heads, queries, bias, normalizer);
                  });
    });
  });
}

void cpu_attention_general_backward(const AttentionGradients& g, Tensor dout,
                                    const AttentionSaved& saved, const Attention& a,
                                    const AttentionScratch& s) {
  const int64_t H = a.q.shape[2], K = a.k.shape[2], group = H / K;
  dispatch_activation(a.q.dtype, [&]<class A>() {
    parallel_for_slots(a.q.shape[0] * K, [&](int64_t n, int64_t slot) {
      const int64_t kh = n % K;
      with_stages(a, s, slot, &g.bias,
                  [&](RowBias& bias, RowNormalizer& normalizer, float* scratch) {
                    backward_part<A>(g, dout, saved, a, scratch, n / K,
                                     {kh * group, (kh + 1) * group}, bias, normalizer);
                  });
    });
  });
  join_partials(g.bias, a, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

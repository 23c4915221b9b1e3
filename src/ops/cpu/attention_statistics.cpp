// What attention's rows look like, in strips as on the general path: weights again from what the
// forward pass saved, whichever path that was, and no product with the values. Every tile is looked
// at: AttentionSaved::live knows of weights in fp32, and an underflow is not sparsity.

#include "ops/cpu/attention_statistics.h"

#include "ops/cpu/attention_strips.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

/// Of rows that no forward pass saved anything of.
struct Entropy {
  Tensor entropy;  // (B, H, T) P

  void take(int64_t at, float* z, float*, int64_t n, RowNormalizer& normalizer,
            SavedRow own) const {
    normalizer.weights(z, n, own);
    entropy.ptr<float>()[at] = std::max(row::entropy(z, n), 0.0f);
  }
};

template <class A, class Numbers>
void statistics_part(const Numbers& out, const AttentionSaved& saved, const Attention& a,
                     float* scratch, int64_t b, Span heads, Span queries, RowBias& bias,
                     RowNormalizer& normalizer) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const float root = 1 / a.content_divisor<float>();
  Pieces pieces(scratch);
  float* keys = pieces.take(Tp * Dp);
  float* packed = pieces.take(Tp * Dp);
  float* query = pieces.take(kQ * Dp);
  float* u = pieces.take(strip_stride(T));
  float* z = pieces.take(strip_floats(T));

  const Sight sight(a, b);
  const int64_t from = sight.first_tile(queries.begin), to = sight.end(queries.end);
  pack_rows<A>(packed + from * Dp, a.k, b, kh, from, to, Dp, 1);
  transpose_tiles(keys, packed, from, to, D, Dp);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    bias.set_head(b, h);
    normalizer.set_head(h);
    const Factors t(a, b, h);
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += strip_rows(T)) {
      const Strip s(a, b, i0, std::min(i0 + strip_rows(T), queries.end));
      pack_rows<A>(query, a.q, b, h, s.i0, s.i1, Dp, root);
      bias.set_tile(s.i0, s.i1, s.from, s.end);
      s.for_tiles([&](int64_t j0) {
        tile::product<false>(s.rows(), kK, D, {query, Dp, 1}, keys + j0 * D, kK, s.at(z, s.i0, j0),
                             strip_stride(T));
      });
      for (int64_t i = s.i0; i < s.i1; ++i) {
        const RowSpan row = s.row(i);
        float* const own = s.at(z, i, row.first);
        bias.add(own, row, t.of_content(i), t.of_bias(i));
        s.fill_beside(z, row, row::kMinusInfinity);
        const int64_t at = (b * H + h) * T + i;
        SavedRow of_row = saved_row(saved, at);
        of_row.last -= static_cast<int32_t>(row.first);
        out.take(at, own, u, row.n, normalizer, of_row);
      }
    }
  }
}

template <class Numbers>
void of_all_rows(const Numbers& out, const AttentionSaved& saved, const Attention& a,
                 const AttentionScratch& s) {
  dispatch_activation(a.q.dtype, [&]<class A>() {
    for_query_tasks(a, [&](int64_t slot, int64_t b, Span heads, Span queries) {
      if (queries.begin == queries.end) return;
      with_stages(a, s, slot, nullptr,
                  [&](RowBias& bias, RowNormalizer& normalizer, float* scratch) {
                    statistics_part<A>(out, saved, a, scratch, b, heads, queries, bias, normalizer);
                  });
    });
  });
}

}  // namespace

int64_t statistics_floats(int64_t T, int64_t D, const ContentShape& content) {
  return row_bias_floats(T, D, content) + 2 * simd::kWidth + 2 * padded_keys(T) * padded(D) +
         kQ * padded(D) + strip_stride(T) + most_strip_floats(T);
}

void cpu_attention_statistics(Tensor entropy, Tensor support, const AttentionSaved& saved,
                              const Attention& a, const AttentionScratch& s) {
  require(s.statistics, "statistics that were planned");
  require(a.past() == 0, "all rows");
  const RowStatistics out = {entropy, support, traits_of(a.normalizer.form.kind).constant_alone()};
  if (a.mix) return cpu_attention_mix_statistics(out, saved, a, s);
  of_all_rows(out, saved, a, s);
}

void cpu_attention_entropy_of_content(Tensor entropy, const Attention& a,
                                      const AttentionScratch& s) {
  require(s.content.any, "a bias that was planned");
  Attention by_softmax = a;
  by_softmax.normalizer = {};
  of_all_rows(Entropy{entropy}, {}, by_softmax, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_online.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/biases.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

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
  const Running run(pieces, Dp);
  float* tile = pieces.take(kTile);

  const int64_t from = sight.first_tile(queries.begin), to = sight.end(queries.end);  // keys
  pack_rows<A>(values + from * Dp, a.k, b, kh, from, to, Dp, 1);  // on their way to `keys`
  transpose_tiles(keys, values, from, to, D, Dp);
  pack_rows<A>(values + from * Dp, a.v, b, kh, from, to, Dp, 1);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    const Stage biases(a, b, h, bias_memory);
    const Factors t(a, b, h);
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += kQ) {
      const int64_t i1 = std::min(i0 + kQ, T), rows = i1 - i0;
      pack_rows<A>(query, a.q, b, h, i0, i1, Dp, root);
      run.begin(Dp);
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
      run.end(rows, Dp, level.ptr<float>() + (b * H + h) * T + i0);
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

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_online.h"
#include "ops/cpu/attention_operands.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/biases.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

/// The queries in `queries` of the query heads in `heads`, which read one key head.
template <class Stage, ScaleMode kScale>
void forward_part(Tensor out, Tensor level, const Attention& a, Operands& operands, Pieces& pieces,
                  int64_t b, Span heads, Span queries) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], Dp = padded(a.q.shape[3]);
  const int64_t kh = heads.begin / (H / a.k.shape[2]);
  const Sight sight(a, b);
  const BiasMemory bias_memory(pieces, T);
  const Running run(pieces, Dp);

  const int64_t from = sight.first_tile(queries.begin);
  operands.pack_keys(b, kh, from, sight.end(queries.end));
  for (int64_t h = heads.begin; h < heads.end; ++h) {
    const Stage biases(a, b, h, bias_memory);
    const Factors t(a, b, h);
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += kQ) {
      const int64_t i1 = std::min(i0 + kQ, T);
      operands.pack_queries(0, b, h, i0, i1);
      run.begin(Dp);
      const int64_t j_first = sight.first_tile(i0), j_end = sight.end(i1);
      attend<kScale>(operands, 0, run, biases, t, sight, i0, i1, j_first, j_end, j_first - from,
                     Dp);
      run.end(i1 - i0, Dp, level.ptr<float>() + (b * H + h) * T + i0);
      operands.unpack(out, b, h, i0, i1, run.out);
    }
  }
}

}  // namespace

void cpu_attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                           const AttentionScratch& s) {
  dispatch_form(a, [&]<class Stage, ScaleMode kScale>() {
    for_query_tasks(a, [&](int64_t slot, int64_t b, Span heads, Span queries) {
      if (queries.begin == queries.end) return;
      Pieces pieces(s.of_slot(slot));
      with_operands(a, s, pieces, padded_keys(a.q.shape[1]), 1, [&](Operands& operands) {
        forward_part<Stage, kScale>(out, saved.level, a, operands, pieces, b, heads, queries);
      });
    });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

// Attention of a piece of a text to the keys of all of it before: queries in tiles; keys and values
// in blocks, packed once for all tiles, so that this memory does not grow with the text.

#include <algorithm>

#include "core/parallel.h"
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

constexpr int64_t kBlockKeys = 16 * kK;

/// The queries in `queries` of a head.
template <class Stage, ScaleMode kScale>
void piece_part(Tensor out, Tensor level, const Attention& a, Operands& operands, Pieces& pieces,
                int64_t b, int64_t h, Span queries) {
  const int64_t past = a.past(), Dp = padded(a.q.shape[3]);
  const int64_t kh = h / (a.q.shape[2] / a.k.shape[2]);
  const int64_t query_tiles = ceil_div(queries.end - queries.begin, kQ);
  const Sight sight(a, b);
  const BiasMemory bias_memory(pieces, a.k.shape[1]);
  float* const sums = pieces.take(query_tiles * Running::floats(Dp));
  const Stage biases(a, b, h, bias_memory);
  const Factors t(a, b, h);

  /// f(n, i0, i1, its sums) for the tiles of queries.
  const auto for_tiles = [&](auto&& f) {
    for (int64_t n = 0; n < query_tiles; ++n) {
      const int64_t i0 = queries.begin + n * kQ;
      Pieces own(sums + n * Running::floats(Dp));
      f(n, i0, std::min(i0 + kQ, queries.end), Running(own, Dp));
    }
  };
  for_tiles([&](int64_t n, int64_t i0, int64_t i1, const Running& run) {
    operands.pack_queries(n, b, h, i0 - past, i1 - past);
    run.begin(Dp);
  });
  const int64_t end = sight.end(queries.end);
  for (int64_t block = sight.first_tile(queries.begin); block < end; block += kBlockKeys) {
    const int64_t end_of_block = std::min(block + kBlockKeys, end);
    operands.pack_keys(b, kh, block, end_of_block);
    for_tiles([&](int64_t n, int64_t i0, int64_t i1, const Running& run) {
      const int64_t j_first = std::max(block, sight.first_tile(i0)),
                    j_end = std::min(end_of_block, sight.end(i1));
      if (j_first >= j_end) return;
      attend<kScale>(operands, n, run, biases, t, sight, i0, i1, j_first, j_end, j_first - block,
                     Dp);
    });
  }
  float* const to_level =
      level.ptr<float>() + (b * a.q.shape[2] + h) * a.q.shape[1] + (queries.begin - past);
  for_tiles([&](int64_t, int64_t i0, int64_t i1, const Running& run) {
    run.end(i1 - i0, Dp, to_level + (i0 - queries.begin));
    operands.unpack(out, b, h, i0 - past, i1 - past, run.out);
  });
}

}  // namespace

int64_t piece_floats(int64_t keys, int64_t rows, int64_t D) {
  const int64_t Dp = padded(D), query_tiles = ceil_div(rows, kQ);
  return Operands::floats(kBlockKeys, query_tiles, Dp) + bias_floats(keys) +
         query_tiles * Running::floats(Dp) + 8 * simd::kWidth;
}

void cpu_attention_of_piece(Tensor out, const AttentionSaved& saved, const Attention& a,
                            const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], past = a.past();
  constexpr double kPackedAgain = 1.3;
  const int64_t parts = worth_splitting(B * H, kPackedAgain) ? ceil_div(T, kQ) : 1;
  const int64_t query_tiles = ceil_div(ceil_div(T, kQ), parts), rows = query_tiles * kQ;
  require(piece_floats(a.k.shape[1], T, a.q.shape[3]) <= s.packed.shape[1],
          "texts that were planned for");
  dispatch_form(a, [&]<class Stage, ScaleMode kScale>() {
    parallel_for_slots(B * H * parts, [&](int64_t n, int64_t slot) {
      const int64_t head = n / parts, first = n % parts * rows;
      Pieces pieces(s.of_slot(slot));
      with_operands(a, s, pieces, kBlockKeys, query_tiles, [&](Operands& operands) {
        piece_part<Stage, kScale>(out, saved.level, a, operands, pieces, head / H, head % H,
                                  {past + first, past + std::min(first + rows, T)});
      });
    });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

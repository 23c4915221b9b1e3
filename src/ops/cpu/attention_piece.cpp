// Attention of a piece of a text to the keys of all of it before: queries in tiles; keys and values
// in blocks, packed once for all tiles, so that this memory does not grow with the text.

#include <algorithm>

#include "core/parallel.h"
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

constexpr int64_t kBlockKeys = 16 * kK;

/// The queries in `queries` of a head.
template <class A, class Stage, ScaleMode kScale>
void piece_part(Tensor out, Tensor level, const Attention& a, float* scratch, int64_t b, int64_t h,
                Span queries) {
  const int64_t past = a.past(), D = a.q.shape[3], Dp = padded(D);
  const int64_t kh = h / (a.q.shape[2] / a.k.shape[2]);
  const int64_t query_tiles = ceil_div(queries.end - queries.begin, kQ);
  const float root = 1 / a.content_divisor<float>();
  const Sight sight(a, b);
  Pieces pieces(scratch);
  float* const keys = pieces.take(kBlockKeys * Dp);
  float* const values = pieces.take(kBlockKeys * Dp);
  const BiasMemory bias_memory(pieces, a.k.shape[1]);
  float* const query = pieces.take(query_tiles * kQ * Dp);
  float* const sums = pieces.take(query_tiles * Running::floats(Dp));
  float* const tile = pieces.take(kTile);
  const Stage biases(a, b, h, bias_memory);
  const Factors t(a, b, h);

  /// f(i0, i1, its packed queries, its sums) for the tiles of queries.
  const auto for_tiles = [&](auto&& f) {
    for (int64_t n = 0; n < query_tiles; ++n) {
      const int64_t i0 = queries.begin + n * kQ;
      Pieces own(sums + n * Running::floats(Dp));
      f(i0, std::min(i0 + kQ, queries.end), query + n * kQ * Dp, Running(own, Dp));
    }
  };
  for_tiles([&](int64_t i0, int64_t i1, float* q, const Running& run) {
    pack_rows<A>(q, a.q, b, h, i0 - past, i1 - past, Dp, root);
    run.begin(Dp);
  });
  const int64_t end = sight.end(queries.end);
  for (int64_t block = sight.first_tile(queries.begin); block < end; block += kBlockKeys) {
    const int64_t end_of_block = std::min(block + kBlockKeys, end);
    pack_rows<A>(values, a.k, b, kh, block, end_of_block, Dp, 1);  // on their way to `keys`
    transpose_tiles(keys, values, 0, end_of_block - block, D, Dp);
    pack_rows<A>(values, a.v, b, kh, block, end_of_block, Dp, 1);
    for_tiles([&](int64_t i0, int64_t i1, const float* q, const Running& run) {
      const int64_t rows = i1 - i0, j_first = std::max(block, sight.first_tile(i0)),
                    j_end = std::min(end_of_block, sight.end(i1));
      if (j_first >= j_end) return;
      biases.set_tile(i0, i1, j_first, j_end);
      for (int64_t j0 = j_first; j0 < j_end; j0 += kK) {
        tile::product<false>(rows, kK, D, {q, Dp, 1}, keys + (j0 - block) * D, kK, tile + kMargin,
                             kStride);
        online_softmax<kScale>(tile, run, biases, t, sight, i0, i1, j0, Dp,
                               sight.whole(i0, i1, j0));
        tile::product<true>(rows, Dp, std::min(kK, j_end - j0), {tile + kMargin, kStride, 1},
                            values + (j0 - block) * Dp, Dp, run.out, Dp);
      }
    });
  }
  float* const to_level =
      level.ptr<float>() + (b * a.q.shape[2] + h) * a.q.shape[1] + (queries.begin - past);
  for_tiles([&](int64_t i0, int64_t i1, const float*, const Running& run) {
    run.end(i1 - i0, Dp, to_level + (i0 - queries.begin));
    unpack_rows<A>(out, b, h, i0 - past, i1 - past, run.out, Dp, 1);
  });
}

}  // namespace

int64_t piece_floats(int64_t keys, int64_t rows, int64_t D) {
  const int64_t Dp = padded(D), query_tiles = ceil_div(rows, kQ);
  return 2 * kBlockKeys * Dp + bias_floats(keys) + query_tiles * (kQ * Dp + Running::floats(Dp)) +
         kTile + 8 * simd::kWidth;
}

void cpu_attention_of_piece(Tensor out, const AttentionSaved& saved, const Attention& a,
                            const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], past = a.past();
  constexpr double kPackedAgain = 1.3;
  const int64_t parts = worth_splitting(B * H, kPackedAgain) ? ceil_div(T, kQ) : 1;
  const int64_t rows = ceil_div(ceil_div(T, kQ), parts) * kQ;
  require(piece_floats(a.k.shape[1], T, a.q.shape[3]) <= s.packed.shape[1],
          "texts that were planned for");
  dispatch_activation(a.q.dtype, [&]<class A>() {
    dispatch_form(a, [&]<class Stage, ScaleMode kScale>() {
      parallel_for_slots(B * H * parts, [&](int64_t n, int64_t slot) {
        const int64_t head = n / parts, first = n % parts * rows;
        piece_part<A, Stage, kScale>(out, saved.level, a, s.of_slot(slot), head / H, head % H,
                                     {past + first, past + std::min(first + rows, T)});
      });
    });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

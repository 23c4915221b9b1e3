#include "ops/cpu/attention_tasks.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/attention_bias_rows.h"
#include "ops/cpu/attention_online.h"
#include "ops/cpu/attention_operands.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

namespace {

constexpr int64_t kParts = 8;

/// Where part `part` begins, in tiles: the area under the diagonal up to there is part / parts of
/// the whole.
int64_t first_tile(int64_t T, int64_t part) {
  const auto n = static_cast<double>(ceil_div(T, kK));
  const double share = static_cast<double>(part) / static_cast<double>(parts_of(T));
  return static_cast<int64_t>(std::lround(n * std::sqrt(share)));
}

}  // namespace

// With two tiles or more a part on average the last one, the smallest, has one at least.
int64_t parts_of(int64_t T) { return std::clamp<int64_t>(ceil_div(T, kK) / 2, 1, kParts); }

Span query_part(int64_t T, int64_t part) {
  return {std::min(T, first_tile(T, part) * kQ), std::min(T, first_tile(T, part + 1) * kQ)};
}

Span key_part(int64_t T, int64_t part) {
  const int64_t n = ceil_div(T, kK), parts = parts_of(T);
  return {std::min(T, (n - first_tile(T, parts - part)) * kK),
          std::min(T, (n - first_tile(T, parts - part - 1)) * kK)};
}

bool worth_splitting(int64_t tasks, double cost) {
  const int64_t threads = max_threads(), rounds = ceil_div(tasks, threads);
  return static_cast<double>(rounds * threads) > cost * static_cast<double>(tasks);
}

int64_t forward_floats(int64_t T, int64_t D) {
  const int64_t Dp = padded(D);
  return Operands::floats(padded_keys(T), 1, Dp) + bias_floats(T) + Running::floats(Dp);
}
int64_t row_floats(int64_t T, int64_t D) { return padded(T) + padded(D); }
int64_t backward_floats(int64_t T, int64_t D) {
  const int64_t Tp = padded_keys(T), Dp = padded(D);
  return 8 * Tp * Dp + kQ * Dp + bias_floats(T) + 4 * Tp + 2 * kTile;
}

}  // namespace tiles

void AttentionScratch::plan(Arena& arena, const WorkspaceShape& w) {
  using namespace tiles;
  int64_t floats = std::max(forward_floats(w.T, w.D), row_floats(w.past + w.T, w.D));
  if (w.backward) floats = std::max(floats, backward_floats(w.T, w.D));
  if (w.incremental) floats = std::max(floats, piece_floats(w.past + w.T, w.T, w.D));
  general = w.general_attention;
  content = {w.content_bias, w.content_columns, !w.bidirectional};
  if (general || content.any) {
    floats = std::max(floats, general_forward_floats(w.T, w.D, content));
    if (w.backward) floats = std::max(floats, general_backward_floats(w.T, w.D, content));
  }
  statistics = w.attention_statistics;
  if (statistics || content.any) floats = std::max(floats, statistics_floats(w.T, w.D, content));
  const int64_t most_tasks = 2 * w.B * w.H * parts_of(w.T);
  if (!w.all_mixed) {
    arena.add("scratch.attention", &packed, Dtype::f32,
              {std::min<int64_t>(max_threads(), most_tasks), padded(floats) + 256});
  }
  if (w.mix_hidden > 0) plan_mix(arena, w);
  if (w.backward) {
    arena.add("scratch.attention_tables", &dtable, Dtype::f32,
              {w.B, w.H, parts_of(w.T), table_length(w.T, !w.bidirectional)});
    if (content.any) {
      arena.add("scratch.attention_content", &of_content, Dtype::f32,
                {w.B * w.H, content_partial_floats(w.T, w.D, content)});
    }
    arena.add("scratch.attention_fire", &dfire, Dtype::f64,
              {w.B, w.H, parts_of(w.T), 2 * kFireSegments});
  }
}

float* AttentionScratch::of_slot(int64_t slot) const {
  require(packed && slot < packed.shape[0],
          "no more threads or tasks than when the scratch was planned");
  return packed.ptr<float>() + slot * packed.stride[0];
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

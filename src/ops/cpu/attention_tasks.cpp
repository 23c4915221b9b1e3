#include "ops/cpu/attention_tasks.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/attention_mix.h"
#include "ops/cpu/attention_policies.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

namespace {

constexpr int64_t kParts = 8;

/// Where part `part` of T queries after `past` keys begins, in tiles: the pairs of queries before
/// it with the keys that they see are part / parts of all.
int64_t first_tile(int64_t past, int64_t T, int64_t part) {
  const auto n = static_cast<double>(ceil_div(T, kK));
  const double before = static_cast<double>(past) / static_cast<double>(kK);
  const double share = static_cast<double>(part) / static_cast<double>(parts_of(T));
  // share (before n + n^2 / 2) = before x + x^2 / 2
  const double x = std::sqrt(before * before + share * (2 * before * n + n * n)) - before;
  return static_cast<int64_t>(std::lround(x));
}

}  // namespace

// With two tiles or more a part on average the last one, the smallest, has one at least.
int64_t parts_of(int64_t T) { return std::clamp<int64_t>(ceil_div(T, kK) / 2, 1, kParts); }

Span query_part(const Attention& a, int64_t part) {
  const int64_t T = a.q.shape[1], past = a.past();
  return {past + std::min(T, first_tile(past, T, part) * kQ),
          past + std::min(T, first_tile(past, T, part + 1) * kQ)};
}

Span key_part(int64_t T, int64_t part) {
  const int64_t n = ceil_div(T, kK), parts = parts_of(T);
  return {std::min(T, (n - first_tile(0, T, parts - part)) * kK),
          std::min(T, (n - first_tile(0, T, parts - part - 1)) * kK)};
}

int64_t mix_group(int64_t B, int64_t T) {
  return std::clamp<int64_t>(ceil_div(int64_t{2} * max_threads(), parts_of(T)), 1, B);
}

bool worth_splitting(int64_t tasks, double cost) {
  const int64_t threads = max_threads(), rounds = ceil_div(tasks, threads);
  return static_cast<double>(rounds * threads) > cost * static_cast<double>(tasks);
}

}  // namespace tiles

void AttentionScratch::plan(Arena& arena, const WorkspaceShape& w) {
  using namespace tiles;
  general = w.any(&AttentionForm::general);
  statistics = w.attention_statistics;
  content = {w.any(&AttentionForm::content), w.content_columns(), !w.bidirectional};
  int64_t floats = forward_floats(w, content);
  if (w.backward) floats = std::max(floats, backward_floats(w, content));
  const MixShape mix(w);
  // In decoding, mixed heads have a task for each block of a row's keys.
  const int64_t most_tasks = mix && w.incremental ? max_threads()
                             : w.all_mixed()      ? w.B * std::max(parts_of(w.T), w.K)
                                                  : 2 * w.B * w.H * parts_of(w.T);
  arena.add("scratch.attention", &packed, Dtype::f32,
            {std::min<int64_t>(max_threads(), most_tasks), padded(floats) + 256});
  if (mix) {
    int64_t shared = w.incremental ? 2 * w.H * most_strip_floats(w.past + w.T) : 0;
    for (int64_t parts = 1; parts <= parts_of(w.T); ++parts) {
      const int64_t longest = parts == parts_of(w.T) ? w.T : (2 * parts + 1) * kK;
      const int64_t of_keys = w.K * padded_keys(longest) * padded(w.D);
      const int64_t arrays = w.backward ? 3 + 2 * parts : 2;
      shared = std::max(shared, mix_group(w.B, longest) * arrays * of_keys);
    }
    arena.add("scratch.attention_mix", &mix_shared, Dtype::f32, {shared});
  }
  if (mix && w.backward) {
    arena.add("scratch.attention_mix", &mix_networks, Dtype::f32,
              {w.B * parts_of(w.T), HeadNetwork::weights(w.H, mix.F, 2 * w.H)});
  }
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

tiles::Pieces AttentionScratch::of_slot(int64_t slot) const {
  require(packed && slot < packed.shape[0],
          "no more threads or tasks than when the scratch was planned");
  return {packed.ptr<float>() + slot * packed.stride[0], packed.shape[1]};
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

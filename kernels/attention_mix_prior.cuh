#pragma once
// The gradients of a prior's own bias under a mix of heads, from dB, which the mix leaves in
// AttentionInputs::formed.s.

#include "attention_content.h"
#include "attention_reference.cuh"

namespace bamtrain::kernels {

/// Where rows see keys behind them, which other parts' queries see too: what belongs to a token
/// begins at 0, and all of it is added. A warp per row of the sequences.
template <class A>
BAMTRAIN_KERNEL mix_clear_tokens(ContentGradients<A> g) {
  const OwnRow own;
  if (own.t >= g.in.T || own.lane != 0) return;
  QueryBias().store(g.in, g.bias, row_of(g.in, own.b, own.h, own.t), false);
}

/// Of the prior's bias: what belongs to a query, a warp per row.
template <class A>
BAMTRAIN_KERNEL mix_of_queries(ContentGradients<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own(a.formed.first);
  const int i = own.t;
  if (i >= a.end_of_queries()) return;
  const float* const dB = a.formed.s + a.formed.row(static_cast<int64_t>(own.b) * a.H + own.h, i);
  QueryBias sums;
  const int last = last_of(a, own.b, i);
  for (int j = first_of(a, own.b, i) + own.lane; j <= last; j += 32) {
    const Bias bias = prior_bias_of(a, own.b, own.h, i, j, FirePoint(a, own.b, i, j));
    sums.add(a, BiasGradient(bias, dB[j]), i, j);
  }
  sums.join();
  if (own.lane != 0) return;
  const int64_t row = row_of(a, own.b, own.h, i);
  if (!a.causal) {
    if (a.numbers != nullptr) g.bias.dnumbers[row] += sums.of_number;
    if (a.fire.psi == nullptr) return;
    g.bias.dfire_u[row] += sums.of_fire.of_u;
    g.bias.dfire_psi[row] += sums.of_fire.of_psi;
    return;
  }
  sums.store(a, g.bias, row, false);
}

/// Sums of a block that owns 32 of something, a lane each: the warps divide the rest. In the first
/// warp: their sum.
BAMTRAIN_DEVICE float join_warps(float (&sums)[32 * kRowWarps], float sum) {
  const int thread = static_cast<int>(device::thread_index().x);
  sums[thread] = sum;
  device::barrier();
  for (int w = 1; thread < 32 && w < kRowWarps; ++w) sum += sums[32 * w + thread];
  return sum;
}

/// The keys that the part's queries see, of whichever.
template <class A>
BAMTRAIN_HD int end_of_keys(const AttentionInputs<A>& a) {
  return a.causal ? a.end_of_queries() : a.T;
}

/// What belongs to a key of a formula, added to dnumbers; of fire, from queries before the key.
/// Launch with grid (ceil(end_of_keys / 32), H, B) and 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_keys(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, 32 * kRowWarps);
  BAMTRAIN_SHARED(float, sums_of_u, 32 * kRowWarps);
  BAMTRAIN_SHARED(float, sums_of_psi, 32 * kRowWarps);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int b = static_cast<int>(device::block_index().z);
  const int h = static_cast<int>(device::block_index().y);
  const int j0 = 32 * static_cast<int>(device::block_index().x), j = j0 + thread % 32;
  const int64_t head = static_cast<int64_t>(b) * a.H + h;
  float sum = 0;
  FireSums of_fire;
  for (int i = first_query(a, b, j0) + thread / 32; i < a.end_of_queries(); i += kRowWarps) {
    if (first_of(a, b, i) > j0 + 31) break;  // nor does any query behind it see one of the keys
    if (j > last_of(a, b, i) || j < first_of(a, b, i)) continue;
    const float dB = a.formed.s[a.formed.row(head, i) + j];
    const Bias bias = prior_bias_of(a, b, h, i, j, FirePoint(a, b, i, j));
    sum += dB * bias.of_key;
    if (i < j) of_fire.add(a, BiasGradient(bias, dB), j - i);
  }
  sum = join_warps(sums, sum);
  if (a.fire.psi != nullptr) {
    of_fire.of_u = join_warps(sums_of_u, of_fire.of_u);
    of_fire.of_psi = join_warps(sums_of_psi, of_fire.of_psi);
  }
  if (thread >= 32 || j >= end_of_keys(a)) return;
  const int64_t row = head * a.T + j;
  if (a.numbers != nullptr) g.bias.dnumbers[row] += sum;
  if (a.fire.psi == nullptr) return;
  g.bias.dfire_u[row] += of_fire.of_u;
  g.bias.dfire_psi[row] += of_fire.of_psi;
}

/// dtable at a distance, added to that of the parts before. Launch with grid (ceil(distances / 32),
/// H) and 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_distances(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, 32 * kRowWarps);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int h = static_cast<int>(device::block_index().y);
  const int d0 = 32 * static_cast<int>(device::block_index().x) - a.distances_behind();
  const int d = d0 + thread % 32;
  float sum = 0;
  for (int b = 0; b < a.B; ++b) {
    const int64_t head = static_cast<int64_t>(b) * a.H + h;
    for (int i = (d0 > a.formed.first ? d0 : a.formed.first) + thread / 32; i < a.end_of_queries();
         i += kRowWarps) {
      const bool sees = i - d >= first_of(a, b, i) && i - d <= last_of(a, b, i);
      if (sees) sum += a.formed.s[a.formed.row(head, i) + i - d];
    }
  }
  sum = join_warps(sums, sum);
  if (thread >= 32 || d >= a.T) return;
  float& to = g.bias.dtable[h * g.bias.dtable_head + d];
  to = g.first_of_all ? sum : to + sum;
}

/// Of a tile of queries, the sums of dB and of dB u for each segment of fire. Launch with grid
/// (tiles of queries of the part, H, B) and 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_segments(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, kRowWarps* kFirePartial);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int warp = thread / 32, lane = thread % 32;
  const int b = static_cast<int>(device::block_index().z);
  const int h = static_cast<int>(device::block_index().y);
  const int i0 = a.formed.first + kTile * static_cast<int>(device::block_index().x);
  const int end = i0 + kTile < a.end_of_queries() ? i0 + kTile : a.end_of_queries();
  const int64_t head = static_cast<int64_t>(b) * a.H + h;
  float* const own = sums + warp * kFirePartial;
  for (int n = lane; n < kFirePartial; n += 32) own[n] = 0;
  device::sync_warp();
  for (int i = i0 + warp; i < end; i += kRowWarps) {
    const float* const dB = a.formed.s + a.formed.row(head, i);
    const int64_t position = a.fire.positions[static_cast<int64_t>(b) * a.T + i];
    const int32_t* const ends = a.fire.ends + position * kFireHidden;
    const int visible = i - first_of(a, b, i) + 1;
    int begin = 0;
    for (int segment = 0; segment < kFireSegments && begin < visible; ++segment) {
      const int last = segment == kFireHidden || ends[segment] > visible ? visible : ends[segment];
      if (last <= begin) continue;
      float of_one = 0, of_psi = 0;
      for (int d = begin + lane; d < last; d += 32) {
        of_one += dB[i - d];
        of_psi += dB[i - d] * a.fire.psi[d];
      }
      of_one = warp_sum(of_one);
      of_psi = warp_sum(of_psi);
      if (lane == 0) {
        own[2 * segment] += of_one;
        own[2 * segment + 1] += a.fire.inverse[position] * of_psi;
      }
      begin = last;
    }
    // Keys behind have segments of their own: one after another.
    for (int j0 = i + 1; j0 <= last_of(a, b, i); j0 += 32) {
      const int j = j0 + lane;
      const bool sees = j <= last_of(a, b, i);
      const FirePoint at(a, b, i, sees ? j : i);
      const float of_key = sees ? dB[j] : 0.0f;
      for (int n = 0; n < 32; ++n) {
        const int segment = device::shuffle(device::kWholeWarp, at.segment, n);
        const float one = device::shuffle(device::kWholeWarp, of_key, n);
        const float u = device::shuffle(device::kWholeWarp, of_key * at.u, n);
        if (lane != 0) continue;
        own[2 * segment] += one;
        own[2 * segment + 1] += u;
      }
    }
  }
  device::barrier();
  if (thread >= kFirePartial) return;
  float sum = sums[thread];
  for (int w = 1; w < kRowWarps; ++w) sum += sums[w * kFirePartial + thread];
  const int64_t tile = head * attention_tiles(a.T) + i0 / kTile;
  g.of_fire[tile * kFirePartial + thread] = sum;
}

template <class A>
device::LaunchStatus mix_gradients_of_prior(const ContentGradients<A>& g, device::Stream stream) {
  const AttentionInputs<A>& a = g.in;
  const bool fire = a.fire.psi != nullptr, numbers = a.numbers != nullptr;
  device::LaunchStatus status;
  if ((numbers || fire) && !a.causal && g.first) {
    status = launch_rows(mix_clear_tokens<A>, g, a.T, a.H, a.B, stream);
  }
  if (status.ok() && (numbers || fire)) {
    status = launch_rows(mix_of_queries<A>, g, a.formed.queries, a.H, a.B, stream);
  }
  const auto launch = [&](void (*kernel)(ContentGradients<A>), const device::Dim3& grid) {
    if (status.ok()) status = device::launch(kernel, grid, {32 * kRowWarps, 1, 1}, 0, stream, g);
  };
  if (numbers || (fire && !a.causal)) {
    launch(mix_of_keys<A>, grid_of_rows(end_of_keys(a), 32, a.H, a.B));
  }
  if (a.table != nullptr) launch(mix_of_distances<A>, grid_of_rows(a.distances(), 32, a.H, 1));
  if (fire) launch(mix_of_segments<A>, grid_of_rows(a.formed.queries, kTile, a.H, a.B));
  return status;
}

}  // namespace bamtrain::kernels

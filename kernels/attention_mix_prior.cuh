#pragma once
// The gradients of a prior's own bias under a mix of heads, from dB, which the mix leaves in
// AttentionInputs::formed.s.

#include "attention_content.h"
#include "attention_reference.cuh"

namespace bamtrain::kernels {

/// Of the prior's bias: what belongs to a query, a warp per row.
template <class A>
BAMTRAIN_KERNEL mix_of_queries(ContentGradients<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own(a.formed.first);
  const int i = own.t;
  if (i >= a.end_of_queries()) return;
  const float* const dB = a.formed.s + a.formed.row(static_cast<int64_t>(own.b) * a.H + own.h, i);
  QueryBias sums;
  for (int j = first_of(a, own.b, i) + own.lane; j <= i; j += 32) {
    const Bias bias = prior_bias_of(a, own.b, own.h, i, j, FirePoint(a, own.b, i, j));
    sums.add(a, BiasGradient(bias, dB[j]), i - j);
  }
  sums.join();
  if (own.lane == 0) sums.store(a, g.bias, row_of(a, own.b, own.h, i), false);
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

/// What belongs to a key of a formula, added to dnumbers. Launch with grid (ceil(end of the part's
/// queries / 32), H, B) and 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_keys(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, 32 * kRowWarps);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int b = static_cast<int>(device::block_index().z);
  const int h = static_cast<int>(device::block_index().y);
  const int j0 = 32 * static_cast<int>(device::block_index().x), j = j0 + thread % 32;
  const int64_t head = static_cast<int64_t>(b) * a.H + h;
  float sum = 0;
  for (int i = (j0 > a.formed.first ? j0 : a.formed.first) + thread / 32; i < a.end_of_queries();
       i += kRowWarps) {
    if (first_of(a, b, i) > j0 + 31) break;  // nor does any query behind it see one of the keys
    if (j > i || j < first_of(a, b, i)) continue;
    const float dB = a.formed.s[a.formed.row(head, i) + j];
    sum += dB * prior_bias_of(a, b, h, i, j, FirePoint(a, b, i, j)).of_key;
  }
  sum = join_warps(sums, sum);
  if (thread < 32 && j < a.end_of_queries()) g.bias.dnumbers[head * a.T + j] += sum;
}

/// dtable at a distance, added to that of the parts before. Launch with grid (ceil(T / 32), H) and
/// 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_distances(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, 32 * kRowWarps);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int h = static_cast<int>(device::block_index().y);
  const int d0 = 32 * static_cast<int>(device::block_index().x), d = d0 + thread % 32;
  float sum = 0;
  for (int b = 0; b < a.B; ++b) {
    const int64_t head = static_cast<int64_t>(b) * a.H + h;
    for (int i = (d0 > a.formed.first ? d0 : a.formed.first) + thread / 32; i < a.end_of_queries();
         i += kRowWarps) {
      if (i - d >= first_of(a, b, i)) sum += a.formed.s[a.formed.row(head, i) + i - d];
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
  if (numbers || fire) {
    status = launch_rows(mix_of_queries<A>, g, a.formed.queries, a.H, a.B, stream);
  }
  const auto launch = [&](void (*kernel)(ContentGradients<A>), const device::Dim3& grid) {
    if (status.ok()) status = device::launch(kernel, grid, {32 * kRowWarps, 1, 1}, 0, stream, g);
  };
  if (numbers) launch(mix_of_keys<A>, grid_of_rows(a.end_of_queries(), 32, a.H, a.B));
  if (a.table != nullptr) launch(mix_of_distances<A>, grid_of_rows(a.T, 32, a.H, 1));
  if (fire) launch(mix_of_segments<A>, grid_of_rows(a.formed.queries, kTile, a.H, a.B));
  return status;
}

}  // namespace bamtrain::kernels

#pragma once
// Fused attention, forward: one block per 64 queries of one head, keys and values streamed through
// two stages of shared memory, online softmax in base 2, dead tiles never loaded.

#include "attention.cuh"

namespace bamtrain::kernels {

/// Launch with grid (ceil(T / 64), H, B), kThreads threads and this much dynamic shared memory.
template <int D>
constexpr size_t attention_forward_shared() {
  return 4 * kTileBytes<D> + 2 * 2 * kTile * sizeof(float);
}

/// out (B, T, H, D) and lse (B, H, T) are written.
template <int D, bool kTable, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads)
    attention_forward(AttentionInputs a, Rows<bf16> out, float* lse) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int tiles = static_cast<int>(device::grid_size().x);
  // The longest rows first, so that short ones fill the gaps at the end.
  const int i0 = kTile * (tiles - 1 - static_cast<int>(device::block_index().x));
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  const int kh = h / a.group;
  const SharedAddress keys = device::shared_address(shared);
  const SharedAddress values = keys + 2 * kTileBytes<D>;
  float* const biases = reinterpret_cast<float*>(shared + 4 * kTileBytes<D>);  // two slices
  const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const int64_t row_of_head = (static_cast<int64_t>(b) * a.H + h) * a.T;

  const int last_row = i0 + kTile <= a.T ? i0 + kTile - 1 : a.T - 1;
  const int first_tile = first_key[i0] / kTile, last_tile = i0 / kTile;
  const int widest_first = first_key[last_row];

  // Queries pass through the second stage of the keys, on their way to registers.
  copy_tile<D>(keys + kTileBytes<D>, a.q, b, h, i0, a.T);
  device::copy_async_commit();
  copy_tile<D>(keys, a.k, b, kh, first_tile * kTile, a.T);
  copy_tile<D>(values, a.v, b, kh, first_tile * kTile, a.T);
  device::copy_async_commit();
  const int thread = 32 * l.warp + l.lane;
  if (kTable) biases[thread] = bias_at(a, h, i0 - first_tile * kTile + thread - (kTile - 1));
  device::copy_async_wait<1>();
  device::barrier();
  uint32_t query[D / 16][4];
  BAMTRAIN_UNROLL
  for (int step = 0; step < D / 16; ++step) {
    load_a<D>(query[step],
              keys + kTileBytes<D> + static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>, step,
              l);
  }
  device::barrier();

  int rows[2], first[2];
  float t[2] = {1, 1};
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    rows[r] = i0 + l.warp * kWarpRows + l.row + 8 * r;
    const bool inside = rows[r] < a.T;
    first[r] = inside ? first_key[rows[r]] : rows[r] + 1;  // past the end: sees nothing
    if (kScale != ScaleMode::none && inside) t[r] = a.scale[row_of_head + rows[r]];
  }

  float sum_out[D / 8][4] = {};
  float maximum[2] = {kMinusInfinity, kMinusInfinity}, sum[2] = {0, 0};
  const float factor = score_factor<D>();

  for (int tile = first_tile; tile <= last_tile; ++tile) {
    const int j0 = tile * kTile;
    const uint32_t stage = static_cast<uint32_t>((tile - first_tile) % 2);
    const uint32_t other = 1 - stage;
    float next_bias = 0;
    if (tile < last_tile) {
      copy_tile<D>(keys + other * kTileBytes<D>, a.k, b, kh, j0 + kTile, a.T);
      copy_tile<D>(values + other * kTileBytes<D>, a.v, b, kh, j0 + kTile, a.T);
      if (kTable) next_bias = bias_at(a, h, i0 - j0 - kTile + thread - (kTile - 1));
    }
    device::copy_async_commit();
    device::copy_async_wait<1>();
    device::barrier();

    float z[kTile / 8][4] = {};
    BAMTRAIN_UNROLL
    for (int step = 0; step < D / 16; ++step) {
      multiply_transposed<D>(z, query[step], keys + stage * kTileBytes<D>, step, l);
    }
    const float* slice = biases + stage * 2 * kTile;  // at i - j + 63 - (i0 - j0)
    const bool whole = j0 + kTile - 1 <= i0 && widest_first <= j0 && i0 + kTile <= a.T;
    float highest[2] = {maximum[0], maximum[1]};
    BAMTRAIN_UNROLL
    for (int n = 0; n < kTile / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int r = e / 2, j = j0 + 8 * n + 2 * l.pair + e % 2;
        const float bias = kTable ? slice[rows[r] - j - (i0 - j0) + kTile - 1] : 0.0f;
        const bool visible = whole || (j <= rows[r] && j >= first[r]);
        z[n][e] = visible ? logit<kTable, kScale>(z[n][e], factor, t[r], bias) : kMinusInfinity;
        highest[r] = fmaxf(highest[r], z[n][e]);
      }
    }
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      highest[r] = fmaxf(highest[r], device::shuffle_xor(device::kWholeWarp, highest[r], 1));
      highest[r] = fmaxf(highest[r], device::shuffle_xor(device::kWholeWarp, highest[r], 2));
      // A row that has seen no key yet keeps nothing and adds nothing.
      const float base = highest[r] == kMinusInfinity ? 0.0f : highest[r];
      const float keep = device::exp2_approx(maximum[r] - base);
      maximum[r] = highest[r];
      highest[r] = base;
      sum[r] *= keep;
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        sum_out[n][2 * r] *= keep;
        sum_out[n][2 * r + 1] *= keep;
      }
    }
    BAMTRAIN_UNROLL
    for (int n = 0; n < kTile / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        z[n][e] = device::exp2_approx(z[n][e] - highest[e / 2]);
        sum[e / 2] += z[n][e];
      }
    }
    uint32_t p[kTile / 16][4];
    as_operand(p, z);
    multiply<D>(sum_out, p, values + stage * kTileBytes<D>, l);
    if (kTable) biases[other * 2 * kTile + static_cast<uint32_t>(thread)] = next_bias;
    device::barrier();
  }
  device::copy_async_wait<0>();

  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 1);
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 2);
    if (rows[r] >= a.T) continue;
    const float inverse = 1.0f / sum[r];
    auto* to = reinterpret_cast<uint32_t*>(out.at(b, rows[r], h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] =
          device::pack_bf16(sum_out[n][2 * r] * inverse, sum_out[n][2 * r + 1] * inverse);
    }
    if (l.pair == 0) {
      lse[row_of_head + rows[r]] = (maximum[r] + device::log2_approx(sum[r])) * kLn2;
    }
  }
}

}  // namespace bamtrain::kernels

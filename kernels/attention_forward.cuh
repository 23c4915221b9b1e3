#pragma once
// Fused attention, forward: one block per 64 queries of one head, keys and values streamed through
// two stages of shared memory, online softmax in base 2, dead tiles never loaded.

#include "attention.cuh"

namespace bamtrain::kernels {

/// Keys per tile: at most what leaves room for several blocks in the shared memory of sm_80.
template <int D>
constexpr int kForwardKeys = D > 64 ? 32 : 64;

/// Launch with grid (tiles of queries, H, B), kThreads threads and this much dynamic shared memory.
template <int D>
constexpr size_t attention_forward_shared() {
  return kTileBytes<D> + 4 * kTileBytes<D, kForwardKeys<D>> + 2 * kSlice * sizeof(float);
}

/// Blocks on a multiprocessor, here and in the backward kernels: the most that registers allow
/// without spilling.
template <int D>
constexpr int kForwardBlocks = D > 64   ? 3
                               : D > 16 ? 4
                                        : 5;

/// out (B, T, H, D) and lse (B, H, T) are written.
template <int D, bool kTable, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kForwardBlocks<D>)
    attention_forward_queries(AttentionInputs<bf16> a, Rows<bf16> out, float* lse) {
  constexpr int kKeys = kForwardKeys<D>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const QueryBlock<D, kKeys, kScale> own(a, l);
  const int thread = 32 * l.warp + l.lane, kh = own.h / (a.H / a.K);
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress keys = queries + kTileBytes<D>;  // two stages
  const SharedAddress values = keys + 2 * kTileBytes<D, kKeys>;
  float* const biases =
      reinterpret_cast<float*>(shared + kTileBytes<D> + 4 * kTileBytes<D, kKeys>);  // two slices

  copy_tile<D>(queries, a.q, own.b, own.h, own.i0, a.T);
  copy_tile<D, kKeys>(keys, a.k, own.b, kh, own.first_tile * kKeys, a.T);
  copy_tile<D, kKeys>(values, a.v, own.b, kh, own.first_tile * kKeys, a.T);
  device::copy_async_commit();
  if (kTable) biases[thread] = own.bias_for(a, own.first_tile * kKeys, thread);

  const uint32_t warp_rows = static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>;
  float sum_out[D / 8][4] = {};
  float maximum[2] = {kMinusInfinity, kMinusInfinity}, sum[2] = {0, 0};

  for (int tile = own.first_tile; tile <= own.last_tile; ++tile) {
    const int j0 = tile * kKeys;
    const uint32_t stage = static_cast<uint32_t>((tile - own.first_tile) % 2);
    const uint32_t other = 1 - stage;
    float next_bias = 0;
    if (tile < own.last_tile) {
      copy_tile<D, kKeys>(keys + other * kTileBytes<D, kKeys>, a.k, own.b, kh, j0 + kKeys, a.T);
      copy_tile<D, kKeys>(values + other * kTileBytes<D, kKeys>, a.v, own.b, kh, j0 + kKeys, a.T);
      if (kTable) next_bias = own.bias_for(a, j0 + kKeys, thread);
    }
    device::copy_async_commit();
    device::copy_async_wait<1>();
    device::barrier();

    float z[kKeys / 8][4] = {};
    BAMTRAIN_UNROLL
    for (int step = 0; step < D / 16; ++step) {
      uint32_t row[4];
      load_a<D>(row, queries + warp_rows, step, l);
      multiply_transposed<D>(z, row, keys + stage * kTileBytes<D, kKeys>, step, l);
    }
    if (kTable) biases[other * kSlice + static_cast<uint32_t>(thread)] = next_bias;
    const float* slice = biases + stage * kSlice;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int r = e / 2;
        const float bias = kTable ? slice[own.bias_index(r, l.column(n, e))] : 0.0f;
        z[n][e] = logit<kTable, kScale>(z[n][e], own.factor[r], own.t[r], bias);
      }
    }
    if (!own.sees_all(j0)) {
      BAMTRAIN_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) {
        BAMTRAIN_UNROLL
        for (int e = 0; e < 4; ++e) {
          if (!own.sees(e / 2, j0 + l.column(n, e))) z[n][e] = kMinusInfinity;
        }
      }
    }
    float highest[2] = {maximum[0], maximum[1]};
    BAMTRAIN_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) highest[e / 2] = fmaxf(highest[e / 2], z[n][e]);
    }
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      highest[r] = fmaxf(highest[r], device::shuffle_xor(device::kWholeWarp, highest[r], 1));
      highest[r] = fmaxf(highest[r], device::shuffle_xor(device::kWholeWarp, highest[r], 2));
      // A row that has seen no key yet keeps nothing and adds
      // nothing.
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
    for (int n = 0; n < kKeys / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        z[n][e] = device::exp2_approx(z[n][e] - highest[e / 2]);
        sum[e / 2] += z[n][e];
      }
    }
    uint32_t p[kKeys / 16][4];
    as_operand(p, z);
    multiply<D>(sum_out, p, values + stage * kTileBytes<D, kKeys>, l);
    device::barrier();
  }
  device::copy_async_wait<0>();

  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 1);
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 2);
    if (!own.inside(r)) continue;
    const float inverse = 1.0f / sum[r];
    auto* to = reinterpret_cast<uint32_t*>(row_of(out, own.b, own.rows[r], own.h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] =
          device::pack_bf16(sum_out[n][2 * r] * inverse, sum_out[n][2 * r + 1] * inverse);
    }
    if (l.pair == 0) {
      lse[own.of_row(a, r)] = (maximum[r] + device::log2_approx(sum[r])) * kLn2;
    }
  }
}

}  // namespace bamtrain::kernels

#pragma once
// Fused attention, forward: one block per 64 or 128 queries of one head, keys and values streamed
// through two stages of shared memory, online softmax in base 2, dead tiles never loaded.

#include "attention.cuh"
#include "attention_fire.cuh"

namespace bamtrain::kernels {

/// Keys per tile: what leaves room for several blocks in shared memory and registers.
template <int D>
constexpr int kForwardKeys = D > 16 ? 32 : 64;

/// Launch with grid (tiles of queries, H, B), kThreads threads and this much dynamic shared memory.
template <int D>
constexpr size_t attention_forward_shared() {
  constexpr int kKeys = kForwardKeys<D>;
  return kTileBytes<D, kQueryTile<D>> + 4 * kTileBytes<D, kKeys> +
         2 * kQuerySlice<D, kKeys> * sizeof(float);
}

/// Blocks on a multiprocessor, here and in the backward kernels: the most that registers allow
/// without spilling.
template <BiasMode kBias>
constexpr bool kByRow = kBias == BiasMode::fire || kBias == BiasMode::formed;
template <int D, BiasMode kBias>
constexpr int kForwardBlocks = (D > 64 || D <= 32) && !kByRow<kBias> ? 3 : 2;

/// out (B, T, H, D) and lse (B, H, T) are written.
template <int D, BiasMode kBias, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kForwardBlocks<D, kBias>)
    attention_forward_queries(FusedInputs a, Rows<bf16> out, float* lse) {
  constexpr int kKeys = kForwardKeys<D>, M = kRowTiles<D>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const QueryBlock<D, kKeys, kBias, kScale> own(a, l);
  const int thread = 32 * l.warp + l.lane, kh = own.h / (a.H / a.K);
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress keys = queries + kTileBytes<D, kQueryTile<D>>;  // two stages
  const SharedAddress values = keys + 2 * kTileBytes<D, kKeys>;
  float* const biases =
      reinterpret_cast<float*>(shared + kTileBytes<D, kQueryTile<D>> + 4 * kTileBytes<D, kKeys>);

  copy_tile<D, kQueryTile<D>>(queries, a.q, own.b, own.h, own.i0, a.T);
  copy_tile<D, kKeys>(keys, a.k, own.b, kh, own.first_tile * kKeys, a.T);
  copy_tile<D, kKeys>(values, a.v, own.b, kh, own.first_tile * kKeys, a.T);
  device::copy_async_commit();
  float next_bias[kBiasLoads<D, kKeys, kBias>] = {};
  if (kHasSlice<kBias>) {
    own.load_biases(next_bias, a, own.first_tile * kKeys, thread);
    own.store_biases(biases, next_bias, thread);
  }

  FirePlace places[2 * M];
  if (kBias == BiasMode::fire) {
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2 * M; ++r) {
      places[r] =
          FirePlace(a, own.b, own.h, own.rows[r], own.rows[r] - own.first_tile * kKeys, l.pair);
    }
  }
  float sum_out[M][D / 8][4] = {};
  float maximum[2 * M], sum[2 * M];
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2 * M; ++r) {
    maximum[r] = kMinusInfinity;
    sum[r] = 0;
  }

  for (int tile = own.first_tile; tile <= own.last_tile; ++tile) {
    const int j0 = tile * kKeys;
    const uint32_t stage = static_cast<uint32_t>((tile - own.first_tile) % 2);
    const uint32_t other = 1 - stage;
    if (tile < own.last_tile) {
      copy_tile<D, kKeys>(keys + other * kTileBytes<D, kKeys>, a.k, own.b, kh, j0 + kKeys, a.T);
      copy_tile<D, kKeys>(values + other * kTileBytes<D, kKeys>, a.v, own.b, kh, j0 + kKeys, a.T);
      if (kHasSlice<kBias>) own.load_biases(next_bias, a, j0 + kKeys, thread);
    }
    device::copy_async_commit();
    device::copy_async_wait<1>();
    device::barrier();

    if (own.warp_sees(l, j0)) {
      float z[M][kKeys / 8][4] = {};
      BAMTRAIN_UNROLL
      for (int step = 0; step < D / 16; ++step) {
        uint32_t rows[M][4];
        BAMTRAIN_UNROLL
        for (int m = 0; m < M; ++m) {
          load_a<D>(rows[m], queries + static_cast<uint32_t>(own.tile_row(l, m)) * kRowBytes<D>,
                    step, l);
        }
        multiply_transposed<D>(z, rows, keys + stage * kTileBytes<D, kKeys>, step, l);
      }
      const float* slice = biases + stage * kQuerySlice<D, kKeys>;
      const bool sees_all = own.warp_sees_all(l, j0);
      uint32_t p[M][kKeys / 16][4];
      BAMTRAIN_UNROLL
      for (int m = 0; m < M; ++m) {
        float of_rows[2][kKeys / 8][2] = {};
        if (kBias == BiasMode::fire) {
          fire_biases(of_rows[0], places[2 * m], a, own, 2 * m, j0, slice, l);
          fire_biases(of_rows[1], places[2 * m + 1], a, own, 2 * m + 1, j0, slice, l);
        }
        if (kBias == BiasMode::formed) {
          own.formed_biases(of_rows[0], a, 2 * m, j0, l);
          own.formed_biases(of_rows[1], a, 2 * m + 1, j0, l);
        }
        BAMTRAIN_UNROLL
        for (int n = 0; n < kKeys / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) {
            const int r = 2 * m + e / 2;
            const float bias =
                kByRow<kBias> ? of_rows[e / 2][n][e % 2] : own.bias(slice, r, l.column(n, e));
            z[m][n][e] = own.logit_of(r, z[m][n][e], bias);
          }
        }
        if (!sees_all) {
          BAMTRAIN_UNROLL
          for (int n = 0; n < kKeys / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int e = 0; e < 4; ++e) {
              if (!own.sees(2 * m + e / 2, j0 + l.column(n, e))) z[m][n][e] = kMinusInfinity;
            }
          }
        }
        float highest[2] = {maximum[2 * m], maximum[2 * m + 1]};
        BAMTRAIN_UNROLL
        for (int n = 0; n < kKeys / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) highest[e / 2] = fmaxf(highest[e / 2], z[m][n][e]);
        }
        BAMTRAIN_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int r = 2 * m + half;
          highest[half] =
              fmaxf(highest[half], device::shuffle_xor(device::kWholeWarp, highest[half], 1));
          highest[half] =
              fmaxf(highest[half], device::shuffle_xor(device::kWholeWarp, highest[half], 2));
          // A row that has seen no key yet keeps nothing and adds nothing.
          const float base = highest[half] == kMinusInfinity ? 0.0f : highest[half];
          const float keep = device::exp2_approx(maximum[r] - base);
          maximum[r] = highest[half];
          highest[half] = base;
          sum[r] *= keep;
          BAMTRAIN_UNROLL
          for (int n = 0; n < D / 8; ++n) {
            sum_out[m][n][2 * half] *= keep;
            sum_out[m][n][2 * half + 1] *= keep;
          }
        }
        BAMTRAIN_UNROLL
        for (int n = 0; n < kKeys / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) {
            z[m][n][e] = device::exp2_approx(z[m][n][e] - highest[e / 2]);
            sum[2 * m + e / 2] += z[m][n][e];
          }
        }
        as_operand(p[m], z[m]);
      }
      multiply<D>(sum_out, p, values + stage * kTileBytes<D, kKeys>, l);
    }
    if (kHasSlice<kBias>) {
      own.store_biases(biases + other * kQuerySlice<D, kKeys>, next_bias, thread);
    }
    device::barrier();
  }
  device::copy_async_wait<0>();

  BAMTRAIN_UNROLL
  for (int r = 0; r < 2 * M; ++r) {
    const int m = r / 2, half = r % 2;
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 1);
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 2);
    if (!own.inside(r)) continue;
    const float inverse = 1.0f / sum[r];
    auto* to = reinterpret_cast<uint32_t*>(row_of(out, own.b, own.rows[r], own.h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] = device::pack_bf16(sum_out[m][n][2 * half] * inverse,
                                             sum_out[m][n][2 * half + 1] * inverse);
    }
    if (l.pair == 0) {
      lse[own.of_row(a, r)] = (maximum[r] + device::log2_approx(sum[r])) * kLn2;
    }
  }
}

}  // namespace bamtrain::kernels

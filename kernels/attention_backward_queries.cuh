#pragma once
// Fused attention, backward: dq, dt, and what else belongs to a query.

#include "attention_backward_rows.cuh"
#include "attention_fire.cuh"

namespace bamtrain::kernels {

/// Keys per tile here: registers hold two tiles of logits beside dq.
constexpr int kBackwardKeys = 32;
template <int D, BiasMode kBias>
constexpr int kQueriesBlocks = kBias != BiasMode::fire && (D == 96 || (D <= 16 && !kSums<kBias>))
                                   ? 3
                                   : 2;

template <int D>
constexpr size_t attention_backward_queries_shared(BiasMode bias) {
  constexpr int kKeys = kBackwardKeys, kSlices = 2 * kQuerySlice<D, kKeys>;
  const int floats =
      bias == BiasMode::fire ? 2 * kSlices + FireTotals<kQueryTile<D>>::kFloats : kSlices;
  return 2 * kTileBytes<D, kQueryTile<D>> + 4 * kTileBytes<D, kKeys> +
         sizeof(float) * static_cast<size_t>(floats);
}

/// What attention_backward_queries writes beside dq.
struct RowGradients {
  float* scale;              // (B, H, T), with a scale
  float* numbers;            // (B, H, T), with numbers: the queries' part
  float *fire_u, *fire_psi;  // (B, H, T) each, with fire
  float* fire_partial;       // (B, H, tiles of queries, kFirePartial), with fire
};

/// dq (B, T, H, D) and `to_rows` are written. Launch as the forward kernel.
template <int D, BiasMode kBias, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kQueriesBlocks<D, kBias>)
    attention_backward_queries(FusedInputs a, AttentionSaved saved, Rows<bf16> dq,
                               RowGradients to_rows) {
  constexpr int kKeys = kBackwardKeys, M = kRowTiles<D>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const QueryBlock<D, kKeys, kBias, kScale> own(a, l);
  const int thread = 32 * l.warp + l.lane, kh = own.h / (a.H / a.K);
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress outputs = queries + kTileBytes<D, kQueryTile<D>>;  // dO
  const SharedAddress keys = outputs + kTileBytes<D, kQueryTile<D>>;     // two stages
  const SharedAddress values = keys + 2 * kTileBytes<D, kKeys>;
  float* const biases = reinterpret_cast<float*>(shared + 2 * kTileBytes<D, kQueryTile<D>> +
                                                 4 * kTileBytes<D, kKeys>);
  float* const derivatives = biases + 2 * kQuerySlice<D, kKeys>;  // with fire: of psi
  const FireTotals<kQueryTile<D>> fire_totals(derivatives + 2 * kQuerySlice<D, kKeys>);

  copy_tile<D, kQueryTile<D>>(queries, a.q, own.b, own.h, own.i0, a.T);
  copy_tile<D, kQueryTile<D>>(outputs, saved.dout, own.b, own.h, own.i0, a.T);
  copy_tile<D, kKeys>(keys, a.k, own.b, kh, own.first_tile * kKeys, a.T);
  copy_tile<D, kKeys>(values, a.v, own.b, kh, own.first_tile * kKeys, a.T);
  device::copy_async_commit();
  float next_bias[kBiasLoads<D, kKeys, kBias>] = {};
  if (kBias != BiasMode::none) {
    own.load_biases(next_bias, a, own.first_tile * kKeys, thread);
    own.store_biases(biases, next_bias, thread);
  }
  float next_derivative[kBiasLoads<D, kKeys, kBias>] = {};
  FirePlace places[2 * M];
  if (kBias == BiasMode::fire) {
    own.load_derivatives(next_derivative, a, own.first_tile * kKeys, thread);
    own.store_biases(derivatives, next_derivative, thread);
    fire_totals.clear(thread);
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2 * M; ++r) {
      places[r] =
          FirePlace(a, own.b, own.h, own.rows[r], own.rows[r] - own.first_tile * kKeys, l.pair);
      fire_totals.clear_row(a, own, r, l);
    }
  }

  float lse[2 * M] = {}, row_product[2 * M] = {}, dt[2 * M] = {}, dsum[2 * M] = {};
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2 * M; ++r) {
    if (!own.inside(r)) continue;
    lse[r] = saved.lse[own.of_row(a, r)] * kLog2e;
    row_product[r] = saved.row_product[own.of_row(a, r)];
  }
  float sum[M][D / 8][4] = {};

  for (int tile = own.first_tile; tile <= own.last_tile; ++tile) {
    const int j0 = tile * kKeys;
    const uint32_t stage = static_cast<uint32_t>((tile - own.first_tile) % 2), other = 1 - stage;
    if (tile < own.last_tile) {
      copy_tile<D, kKeys>(keys + other * kTileBytes<D, kKeys>, a.k, own.b, kh, j0 + kKeys, a.T);
      copy_tile<D, kKeys>(values + other * kTileBytes<D, kKeys>, a.v, own.b, kh, j0 + kKeys, a.T);
      if (kBias != BiasMode::none) own.load_biases(next_bias, a, j0 + kKeys, thread);
      if (kBias == BiasMode::fire) {  // stored at once, for the registers
        own.load_derivatives(next_derivative, a, j0 + kKeys, thread);
        own.store_biases(derivatives + other * kQuerySlice<D, kKeys>, next_derivative, thread);
      }
    }
    device::copy_async_commit();
    device::copy_async_wait<1>();
    device::barrier();

    if (own.warp_sees(l, j0)) {
      float s[M][kKeys / 8][4] = {}, dz[M][kKeys / 8][4] = {};
      BAMTRAIN_UNROLL
      for (int step = 0; step < D / 16; ++step) {
        uint32_t rows[M][4];
        BAMTRAIN_UNROLL
        for (int m = 0; m < M; ++m) {
          load_a<D>(rows[m], queries + static_cast<uint32_t>(own.tile_row(l, m)) * kRowBytes<D>,
                    step, l);
        }
        multiply_transposed<D>(s, rows, keys + stage * kTileBytes<D, kKeys>, step, l);
        BAMTRAIN_UNROLL
        for (int m = 0; m < M; ++m) {
          load_a<D>(rows[m], outputs + static_cast<uint32_t>(own.tile_row(l, m)) * kRowBytes<D>,
                    step, l);
        }
        multiply_transposed<D>(dz, rows, values + stage * kTileBytes<D, kKeys>, step, l);
      }
      const float* slice = biases + stage * kQuerySlice<D, kKeys>;
      const bool sees_all = own.warp_sees_all(l, j0);
      uint32_t ds[M][kKeys / 16][4];
      BAMTRAIN_UNROLL
      for (int m = 0; m < M; ++m) {
        const auto set_dz = [&](int n, int e, float bias) {
          const int r = 2 * m + e / 2;
          const float z = own.logit_of(r, s[m][n][e], bias);
          dz[m][n][e] = device::exp2_approx(z - lse[r]) * (dz[m][n][e] - row_product[r]);
          // What dt sums up.
          if (kScale == ScaleMode::both) s[m][n][e] = s[m][n][e] * own.factor[r] + bias;
          if (kScale == ScaleMode::rows) {
            s[m][n][e] = s[m][n][e] * a.score_factor + (a.scale_bias ? bias : 0.0f);
          }
        };
        if constexpr (kBias == BiasMode::fire) {
          BAMTRAIN_UNROLL
          for (int half = 0; half < 2; ++half) {
            FirePlace place = places[2 * m + half];  // walked again below
            float bias[kKeys / 8][2] = {};
            fire_biases(bias, place, a, own, 2 * m + half, j0, slice, l);
            BAMTRAIN_UNROLL
            for (int n = 0; n < kKeys / 8; ++n) {
              set_dz(n, 2 * half, bias[n][0]);
              set_dz(n, 2 * half + 1, bias[n][1]);
            }
          }
        } else {
          BAMTRAIN_UNROLL
          for (int n = 0; n < kKeys / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int e = 0; e < 4; ++e) {
              set_dz(n, e, own.bias(slice, 2 * m + e / 2, l.column(n, e)));
            }
          }
        }
        if (!sees_all) {
          BAMTRAIN_UNROLL
          for (int n = 0; n < kKeys / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int e = 0; e < 4; ++e) {
              const int r = 2 * m + e / 2;
              const bool alone = own.first[r] == own.rows[r];
              if (alone || !own.sees(r, j0 + l.column(n, e))) dz[m][n][e] = 0;
            }
          }
        }
        if (kScale != ScaleMode::none) {
          BAMTRAIN_UNROLL
          for (int n = 0; n < kKeys / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int e = 0; e < 4; ++e) dt[2 * m + e / 2] += dz[m][n][e] * s[m][n][e];
          }
        }
        if (kSums<kBias>) {
          BAMTRAIN_UNROLL
          for (int n = 0; n < kKeys / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int e = 0; e < 4; ++e) {
              const int r = 2 * m + e / 2;
              const float x = own.difference(slice, r, l.column(n, e));
              dsum[r] -= dz[m][n][e] * bias_derivative<kBias>(x);
            }
          }
        }
        if (kBias == BiasMode::fire) {
          BAMTRAIN_UNROLL
          for (int r = 2 * m; r < 2 * m + 2; ++r) {
            fire_totals.add(places[r], own.u[r], dz[m], a, own, r, j0, slice,
                            derivatives + stage * kQuerySlice<D, kKeys>, l);
          }
        }
        as_operand(ds[m], dz[m]);
      }
      multiply<D>(sum, ds, keys + stage * kTileBytes<D, kKeys>, l);
    }
    if (kBias != BiasMode::none) {
      own.store_biases(biases + other * kQuerySlice<D, kKeys>, next_bias, thread);
    }
    device::barrier();
  }
  device::copy_async_wait<0>();

  if (kBias == BiasMode::fire && thread < kFirePartial) {
    const int64_t tiles = device::grid_size().x, head = static_cast<int64_t>(own.b) * a.H + own.h;
    to_rows.fire_partial[(head * tiles + own.i0 / kQueryTile<D>)*kFirePartial + thread] =
        fire_totals.of_segment(thread);
  }
  const float root = a.score_factor * kLn2;  // what s is of <q, k>
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2 * M; ++r) {
    const int m = r / 2, half = r % 2;
    if (kScale != ScaleMode::none) {
      dt[r] += device::shuffle_xor(device::kWholeWarp, dt[r], 1);
      dt[r] += device::shuffle_xor(device::kWholeWarp, dt[r], 2);
    }
    if (kSums<kBias>) {
      dsum[r] += device::shuffle_xor(device::kWholeWarp, dsum[r], 1);
      dsum[r] += device::shuffle_xor(device::kWholeWarp, dsum[r], 2);
    }
    if (!own.inside(r)) continue;
    const float to_dq = kScale == ScaleMode::none ? root : root * own.t[r];
    auto* to = reinterpret_cast<uint32_t*>(row_of(dq, own.b, own.rows[r], own.h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] =
          device::pack_bf16(sum[m][n][2 * half] * to_dq, sum[m][n][2 * half + 1] * to_dq);
    }
    if (kSums<kBias> && l.pair == 0) {
      to_rows.numbers[own.of_row(a, r)] = own.u[r] * dsum[r];
    }
    if (kBias == BiasMode::fire && l.pair == 0) {
      const float factor = own.u[r] * kLn2;
      const int row = own.rows[r] - own.i0;
      to_rows.fire_u[own.of_row(a, r)] = factor * fire_totals.u[row];
      to_rows.fire_psi[own.of_row(a, r)] = factor / fire_totals.inverse[row] * fire_totals.psi[row];
    }
    const bool scaled =
        kScale == ScaleMode::rows ? to_rows.scale != nullptr : kScale != ScaleMode::none;
    if (scaled && l.pair == 0) {
      // Raw products still lack their factor; logits in base 2 are too large by log2(e).
      to_rows.scale[own.of_row(a, r)] = dt[r] * (kScale == ScaleMode::content ? root : kLn2);
    }
  }
}

}  // namespace bamtrain::kernels

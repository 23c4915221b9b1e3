#pragma once
// Fused attention, backward, without atomics. Four kernels in this order:
//
//   attention_backward_rows     D_i = <dO_i, O_i>
//   attention_backward_queries  one block per 64 or 128 queries of one head: dq and dt, and partial
//                               sums of db over fire's segments
//   attention_backward_keys     dk and dv, and partial sums of db over diagonals
//   attention_backward_table    the partial sums, in order, to dtable;
//   attention_backward_fire     to dfire
//
// The logits are computed twice, seven products in all instead of five, and in return every output
// has one block that owns it and no sum needs atomics. out and lse are what the forward pass saved.
// dz_ij = p_ij (<dO_i, v_j> - D_i); rows that see one key have p = 1 and dz = 0 exactly.

#include "attention.cuh"
#include "attention_fire.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

/// What the backward pass reads besides the inputs.
struct AttentionSaved {
  Rows<const bf16> dout;
  const float* lse;          // (B, H, T)
  const float* row_product;  // (B, H, T): D_i
};

// --- D_i ----------------------------------------------------------------------------------------

/// Lanes that share a row, 8 elements each: a power of two.
template <int D>
constexpr int kRowLanes = D <= 16   ? 2
                          : D <= 32 ? 4
                          : D <= 64 ? 8
                                    : 16;
template <int D>
constexpr int kRowsPerBlock = kThreads / kRowLanes<D>;

/// Launch with grid (ceil(T / kRowsPerBlock), H, B) and kThreads threads.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads)
    attention_backward_rows(float* row_product, Rows<const bf16> out, Rows<const bf16> dout, int T,
                            int H) {
  const int thread = static_cast<int>(device::thread_index().x), part = thread % kRowLanes<D>;
  const int t =
      static_cast<int>(device::block_index().x) * kRowsPerBlock<D> + thread / kRowLanes<D>;
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  float sum = 0;
  if (t < T && part < D / 8) {
    float o[8], d[8];
    load_vector(o, row_of(out, b, t, h) + 8 * part);
    load_vector(d, row_of(dout, b, t, h) + 8 * part);
    BAMTRAIN_UNROLL
    for (int n = 0; n < 8; ++n) sum += o[n] * d[n];
  }
  BAMTRAIN_UNROLL
  for (int distance = kRowLanes<D> / 2; distance > 0; distance /= 2) {
    sum += device::shuffle_xor(device::kWholeWarp, sum, distance);
  }
  if (t < T && part == 0) row_product[(static_cast<int64_t>(b) * H + h) * T + t] = sum;
}

// --- dq and dt ----------------------------------------------------------------------------------

/// Keys per tile here: registers hold two tiles of logits beside dq.
constexpr int kBackwardKeys = 32;
template <int D, BiasMode kBias>
constexpr int kQueriesBlocks = kBias != BiasMode::fire && (D == 96 || (D <= 16 && !kSums<kBias>))
                                   ? 3
                                   : 2;

template <int D>
constexpr size_t attention_backward_queries_shared(BiasMode bias) {
  constexpr int kKeys = kBackwardKeys, kSlices = 2 * kQuerySlice<D, kKeys>;
  const int floats = bias == BiasMode::fire ? 2 * kSlices + FireTotals<D>::kFloats : kSlices;
  return 2 * kTileBytes<D, kQueryTile<D>> + 4 * kTileBytes<D, kKeys> +
         sizeof(float) * static_cast<size_t>(floats);
}

/// What attention_backward_queries writes beside dq.
struct RowGradients {
  float* scale;              // (B, H, T), with a scale
  float* sums;               // (B, H, T), with BiasMode::log_square
  float *fire_u, *fire_psi;  // (B, H, T) each, with fire
  float* fire_partial;       // (B, H, tiles of queries, kFirePartial), with fire
};

/// dq (B, T, H, D) and `to_rows` are written. Launch as the forward kernel.
template <int D, BiasMode kBias, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kQueriesBlocks<D, kBias>)
    attention_backward_queries(AttentionInputs<bf16> a, AttentionSaved saved, Rows<bf16> dq,
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
  const FireTotals<D> fire_totals(derivatives + 2 * kQuerySlice<D, kKeys>);

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
            s[m][n][e] = s[m][n][e] * score_factor<D>() + (a.scale_bias ? bias : 0.0f);
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
        if (kBias == BiasMode::log_square) {
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
            fire_totals.add(places[r], dz[m], a, own, r, j0, slice,
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
  const float root = score_factor<D>() * kLn2;  // 1 / sqrt(D)
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2 * M; ++r) {
    const int m = r / 2, half = r % 2;
    if (kScale != ScaleMode::none) {
      dt[r] += device::shuffle_xor(device::kWholeWarp, dt[r], 1);
      dt[r] += device::shuffle_xor(device::kWholeWarp, dt[r], 2);
    }
    if (kBias == BiasMode::log_square) {
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
    if (kBias == BiasMode::log_square && l.pair == 0) {
      to_rows.sums[own.of_row(a, r)] = own.u[r] * dsum[r];
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

// --- dk, dv and the diagonals -------------------------------------------------------------------

/// Queries per tile here: registers hold dk and dv of 16 keys beside two tiles of logits.
template <int D>
constexpr int kBackwardQueries = D > 96 ? 16 : 32;
template <int D, BiasMode kBias, ScaleMode kScale>
constexpr int kKeysBlocks = D > 64 ||
                                    (D == 64 && kBias == BiasMode::table &&
                                     kScale == ScaleMode::content) ||
                                    (D == 64 && kSums<kBias>) ||
                                    (D >= 48 && kBias == BiasMode::fire) ||
                                    (D == 48 && kBias == BiasMode::log_square)
                                ? 2
                            : D > 16 ? 3
                                     : 4;

/// Distance between rows of the tile of db in shared memory, in floats: 8 or 24 modulo 32, so that
/// the pairs that a half-warp stores fall into different banks.
template <int D>
constexpr int kDiagonalStride = kBackwardQueries<D> + 8;

template <int D>
constexpr size_t attention_backward_keys_shared(BiasMode bias) {
  constexpr int Q = kBackwardQueries<D>;
  constexpr int kPlaces = Q * sizeof(FirePlace) / sizeof(float);
  const int more = bias == BiasMode::none    ? 0
                   : bias == BiasMode::table ? kSlice + kTile * kDiagonalStride<D>
                   : bias == BiasMode::fire  ? kSlice + kPlaces
                                             : Q;
  return 2 * kTileBytes<D> + 4 * kTileBytes<D, Q> +
         sizeof(float) * static_cast<size_t>(4 * Q + more);
}

/// dk and dv (B, T, K, D) are written; with sums dsums (B, H, T) too; with a table partial (B, H,
/// parts, slot_floats) too, entry kTile - 1 + d of a slot for distance d; slot_floats is
/// attention_partial_table(T). Launch with grid (parts, K, B): a block takes every parts-th tile of
/// keys, so that the partial tables are few and each has one owner.
template <int D, BiasMode kBias, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kKeysBlocks<D, kBias, kScale>)
    attention_backward_keys(AttentionInputs<bf16> a, AttentionSaved saved, Rows<bf16> dk,
                            Rows<bf16> dv, float* dsums, float* partial, int64_t slot_floats) {
  constexpr bool kTable = kBias == BiasMode::table, kFire = kBias == BiasMode::fire;
  constexpr int Q = kBackwardQueries<D>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int part = static_cast<int>(device::block_index().x);
  const int parts = static_cast<int>(device::grid_size().x);
  const int kh = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  const int thread = 32 * l.warp + l.lane, group = a.H / a.K;
  const int own_key = l.warp * kWarpRows + l.row;  // in the tile; and the one 8 further
  const SharedAddress keys = device::shared_address(shared);
  const SharedAddress values = keys + kTileBytes<D>;
  const SharedAddress queries = values + kTileBytes<D>;          // two stages
  const SharedAddress outputs = queries + 2 * kTileBytes<D, Q>;  // dO, two stages
  float* const row_lse =
      reinterpret_cast<float*>(shared + 2 * kTileBytes<D> + 4 * kTileBytes<D, Q>);
  float* const row_product = row_lse + Q;
  float* const row_scale = row_product + Q;
  int* const row_first = reinterpret_cast<int*>(row_scale + Q);
  float* const slice = row_scale + 2 * Q;  // kSlice biases or psi, or the sums of Q queries
  float* const db = slice + kSlice;        // (kTile, kDiagonalStride)
  auto* const row_place = reinterpret_cast<FirePlace*>(slice + kSlice);  // of Q queries, with fire
  const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const float root = score_factor<D>() * kLn2;  // 1 / sqrt(D)
  const uint32_t warp_rows = static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>;

  if (kTable) {
    for (int g = 0; g < group; ++g) {
      float* slot =
          partial + ((static_cast<int64_t>(b) * a.H + kh * group + g) * parts + part) * slot_floats;
      for (int64_t n = thread; n < slot_floats; n += kThreads) slot[n] = 0;
    }
  }

  for (int j0 = part * kTile; j0 < a.T; j0 += parts * kTile) {
    int end = a.T;  // the queries from here on see none of these keys
    {
      // first_key never falls: the first row whose first key lies past the tile.
      int low = j0, high = a.T;
      while (low < high) {
        const int middle = (low + high) / 2;
        if (first_key[middle] > j0 + kTile - 1) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      end = low;
    }
    // Everyone is done with the keys before these: the last barrier of the loop over queries.
    copy_tile<D>(keys, a.k, b, kh, j0, a.T);
    copy_tile<D>(values, a.v, b, kh, j0, a.T);
    float sum_k[1][D / 8][4] = {}, sum_v[1][D / 8][4] = {};

    for (int g = 0; g < group; ++g) {
      const int h = kh * group + g;
      const int64_t row_of_head = (static_cast<int64_t>(b) * a.H + h) * a.T;
      float* slot =
          kTable ? partial + ((static_cast<int64_t>(b) * a.H + h) * parts + part) * slot_floats
                 : nullptr;
      copy_tile<D, Q>(queries, a.q, b, h, j0, a.T);
      copy_tile<D, Q>(outputs, saved.dout, b, h, j0, a.T);
      device::copy_async_commit();
      // Of the thread's two keys: S_j, and the gradient with respect to it.
      double key_sum[2] = {};
      float dkey_sum[2] = {};
      if (kSums<kBias>) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          const int j = j0 + own_key + 8 * r;
          key_sum[r] = a.sums[row_of_head + (j < a.T ? j : a.T - 1)];
        }
      }
      for (int i0 = j0; i0 < end; i0 += Q) {
        const uint32_t stage = static_cast<uint32_t>((i0 - j0) / Q % 2), other = 1 - stage;
        if (i0 + Q < end) {
          copy_tile<D, Q>(queries + other * kTileBytes<D, Q>, a.q, b, h, i0 + Q, a.T);
          copy_tile<D, Q>(outputs + other * kTileBytes<D, Q>, saved.dout, b, h, i0 + Q, a.T);
        }
        device::copy_async_commit();
        if (thread < Q) {
          const int i = i0 + thread;
          const bool inside = i < a.T;
          row_lse[thread] = inside ? saved.lse[row_of_head + i] * kLog2e : 0.0f;
          row_product[thread] = inside ? saved.row_product[row_of_head + i] : 0.0f;
          row_first[thread] = inside ? first_key[i] : i + 1;
          const bool scaled =
              kScale == ScaleMode::rows ? a.scale != nullptr : kScale != ScaleMode::none;
          row_scale[thread] = scaled && inside ? a.scale[row_of_head + i] : 1.0f;
          if (kSums<kBias>) {
            slice[thread] =
                inside ? static_cast<float>(a.sums[row_of_head + i] - a.sums[row_of_head + i0])
                       : 0.0f;
          }
        }
        float key[2] = {};  // relative to the tile's first query, as the slice is
        if (kSums<kBias>) {
          const double base = a.sums[row_of_head + i0];
          BAMTRAIN_UNROLL
          for (int r = 0; r < 2; ++r) key[r] = static_cast<float>(key_sum[r] - base);
        }
        if ((kTable || kFire) && thread < Q + kTile) {
          slice[thread] = bias_at<kBias>(a, h, i0 - j0 + thread - (kTile - 1));
        }
        if (kFire && thread < 4 * Q) {
          const int i = i0 + thread / 4;
          const FirePlace place(a, b, h, i, i - j0, thread % 4);
          if (thread % 4 == 0) row_place[thread / 4] = place;
        }
        device::copy_async_wait<1>();
        device::barrier();

        // Transposed: rows are keys, columns queries.
        float p_tile[1][Q / 8][4] = {}, dz_tile[1][Q / 8][4] = {};
        // Not unrolled, for the registers: the next step's operands would be loaded early.
        BAMTRAIN_NO_UNROLL
        for (int step = 0; step < D / 16; ++step) {
          uint32_t row[1][4];
          load_a<D>(row[0], keys + warp_rows, step, l);
          multiply_transposed<D>(p_tile, row, queries + stage * kTileBytes<D, Q>, step, l);
          load_a<D>(row[0], values + warp_rows, step, l);
          multiply_transposed<D>(dz_tile, row, outputs + stage * kTileBytes<D, Q>, step, l);
        }
        auto& p = p_tile[0];
        auto& dz = dz_tile[0];
        // Read once, before the stores to db, which the compiler takes for stores to them.
        float scale[Q / 8][2];
        BAMTRAIN_UNROLL
        for (int n = 0; n < Q / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int c = 0; c < 2; ++c) {
            scale[n][c] = kScale == ScaleMode::none ? 1.0f : row_scale[l.column(n, c)];
          }
        }
        float fire[Q / 8][4] = {};
        if (kFire) {
          BAMTRAIN_UNROLL
          for (int n = 0; n < Q / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int c = 0; c < 2; ++c) {
              const int query = l.column(n, c), d = i0 + query - j0 - own_key;
              FirePlace place = row_place[query];
              walk_segments(place, a, b, h, i0 + query, d - 8, [&](const FirePlace& at, int high) {
                BAMTRAIN_UNROLL
                for (int r = 0; r < 2; ++r) {
                  const float psi = slice[query - own_key - 8 * r + kTile - 1];
                  if (d - 8 * r < high) fire[n][2 * r + c] = at.factor * psi + at.offset;
                }
              });
            }
          }
          device::sync_warp();  // before ldmatrix
        }
        BAMTRAIN_UNROLL
        for (int n = 0; n < Q / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) {
            const int own = own_key + e / 2 * 8, query = l.column(n, e);
            const float bias = kFire          ? fire[n][e]
                               : kTable       ? slice[query - own + kTile - 1]
                               : kSums<kBias> ? bias_of_sums<kBias>(key[e / 2] - slice[query])
                                              : 0.0f;
            const float t = scale[n][e % 2];
            const float u = kScale == ScaleMode::rows && !a.scale_bias ? 1.0f : t;
            const float z = logit<kBias, kScale>(p[n][e], product_factor<D, kScale>(t), u, bias);
            p[n][e] = device::exp2_approx(z - row_lse[query]);
            dz[n][e] -= row_product[query];
          }
        }
        const bool all_seen = j0 + kTile - 1 <= i0 && row_first[Q - 1] <= j0 && i0 + Q <= a.T;
        if (!all_seen) {
          BAMTRAIN_UNROLL
          for (int n = 0; n < Q / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int e = 0; e < 4; ++e) {
              const int j = j0 + own_key + e / 2 * 8, i = i0 + l.column(n, e);
              const int first = row_first[l.column(n, e)];
              if (j > i || j < first) p[n][e] = 0;
              if (first == i) {
                if (j == i) p[n][e] = 1;
                dz[n][e] = 0;
              }
            }
          }
        }
        BAMTRAIN_UNROLL
        for (int n = 0; n < Q / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) {
            const int own = own_key + e / 2 * 8, query = l.column(n, e);
            const float d = p[n][e] * dz[n][e];
            dz[n][e] = kScale == ScaleMode::none ? d : d * scale[n][e % 2];
            if (kTable) {
              db[own * kDiagonalStride<D> + query] = kScale == ScaleMode::content ? d : dz[n][e];
            }
            if (kSums<kBias>) {
              dkey_sum[e / 2] +=
                  (a.scale_bias ? dz[n][e] : d) * bias_derivative<kBias>(key[e / 2] - slice[query]);
            }
          }
        }
        uint32_t operand[1][Q / 16][4];
        as_operand(operand[0], p);
        multiply<D>(sum_v, operand, outputs + stage * kTileBytes<D, Q>, l);
        as_operand(operand[0], dz);
        multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q>, l);
        device::barrier();
        if (kTable && thread < Q + kTile - 1) {
          // Thread n sums distance i0 - j0 + n - 63: element (key, n - 63 + key).
          const int shift = thread - (kTile - 1);
          float sum = slot[i0 - j0 + thread];
          for (int key = shift < 0 ? -shift : 0; key < kTile && key + shift < Q; ++key) {
            sum += db[key * kDiagonalStride<D> + key + shift];
          }
          slot[i0 - j0 + thread] = sum;
        }
      }
      if (kSums<kBias>) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          dkey_sum[r] += device::shuffle_xor(device::kWholeWarp, dkey_sum[r], 1);
          dkey_sum[r] += device::shuffle_xor(device::kWholeWarp, dkey_sum[r], 2);
          const int j = j0 + own_key + 8 * r;
          if (l.pair == 0 && j < a.T) dsums[row_of_head + j] = dkey_sum[r];
        }
      }
    }

    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int j = j0 + l.warp * kWarpRows + l.row + 8 * r;
      if (j >= a.T) continue;
      auto* to_k = reinterpret_cast<uint32_t*>(row_of(dk, b, j, kh));
      auto* to_v = reinterpret_cast<uint32_t*>(row_of(dv, b, j, kh));
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        to_k[4 * n + l.pair] =
            device::pack_bf16(sum_k[0][n][2 * r] * root, sum_k[0][n][2 * r + 1] * root);
        to_v[4 * n + l.pair] = device::pack_bf16(sum_v[0][n][2 * r], sum_v[0][n][2 * r + 1]);
      }
    }
  }
}

}  // namespace bamtrain::kernels

#pragma once
// Fused attention, backward: dk, dv, and db by distance or by key.

#include "attention_backward_rows.cuh"
#include "attention_fire.cuh"

namespace bamtrain::kernels {

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

/// Distance between rows of the tile of db in shared memory, in floats. Odd: threads whose
/// diagonals begin in different rows read different banks, where at Q + 8 eight of them meet; and
/// of a warp's stores no more than two meet. Even where there are no registers left to store single
/// elements.
template <int D, ScaleMode kScale>
constexpr int kDiagonalStride = kBackwardQueries<D> +
                                (D == 64 && kScale == ScaleMode::none ? 8 : 3);

template <int D>
constexpr size_t attention_backward_keys_shared(BiasMode bias) {
  constexpr int Q = kBackwardQueries<D>;
  constexpr int kPlaces = Q * sizeof(FirePlace) / sizeof(float);
  const int more = bias == BiasMode::none    ? 0
                   : bias == BiasMode::table ? kSlice + kTile * (Q + 8)
                   : bias == BiasMode::fire  ? kSlice + kPlaces
                                             : Q;
  return 2 * kTileBytes<D> + 4 * kTileBytes<D, Q> +
         sizeof(float) * static_cast<size_t>(4 * Q + more);
}

/// The queries from here on see none of the keys of the tile at j0.
BAMTRAIN_DEVICE int end_of_queries(const int32_t* first_key, int j0, int T) {
  // first_key never falls: the first row whose first key lies past the tile.
  int low = j0, high = T;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (first_key[middle] > j0 + kTile - 1) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// dk and dv (B, T, K, D) are written; with numbers the keys' part is added to dnumbers (B, H, T),
/// which has the queries'; with a table partial (B, H, parts, slot_floats) is written too, entry
/// kTile - 1 + d of a slot for distance d; slot_floats is attention_partial_table(T). Launch with
/// grid (parts, K, B): a block takes every parts-th tile of keys, so that the partial tables are
/// few and each has one owner.
template <int D, BiasMode kBias, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kKeysBlocks<D, kBias, kScale>)
    attention_backward_keys(FusedInputs a, AttentionSaved saved, Rows<bf16> dk, Rows<bf16> dv,
                            float* dnumbers, float* partial, int64_t slot_floats) {
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
  const float root = a.score_factor * kLn2;  // what s is of <q, k>
  const uint32_t warp_rows = static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>;

  if (kTable) {
    for (int g = 0; g < group; ++g) {
      float* slot =
          partial + ((static_cast<int64_t>(b) * a.H + kh * group + g) * parts + part) * slot_floats;
      for (int64_t n = thread; n < slot_floats; n += kThreads) slot[n] = 0;
    }
  }

  for (int j0 = part * kTile; j0 < a.T; j0 += parts * kTile) {
    const int end = end_of_queries(first_key, j0, a.T);
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
          key_sum[r] = a.numbers[row_of_head + (j < a.T ? j : a.T - 1)];
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
                inside
                    ? static_cast<float>(a.numbers[row_of_head + i] - a.numbers[row_of_head + i0])
                    : 0.0f;
          }
        }
        float key[2] = {};  // relative to the tile's first query, as the slice is
        if (kSums<kBias>) {
          const double base = a.numbers[row_of_head + i0];
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
            const float z =
                logit<kBias, kScale>(p[n][e], product_factor<kScale>(a.score_factor, t), u, bias);
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
              db[own * kDiagonalStride<D, kScale> + query] =
                  kScale == ScaleMode::content ? d : dz[n][e];
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
            sum += db[key * kDiagonalStride<D, kScale> + key + shift];
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
          if (l.pair == 0 && j < a.T) dnumbers[row_of_head + j] += dkey_sum[r];
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

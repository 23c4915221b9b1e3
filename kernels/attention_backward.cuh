#pragma once
// Fused attention, backward, without atomics. Four kernels in this order:
//
//   attention_backward_rows     D_i = <dO_i, O_i>
//   attention_backward_queries  one block per 64 queries of one head: dq and dt
//   attention_backward_keys     dk and dv, and partial sums of db over diagonals
//   attention_backward_table    the partial sums, in order, to dtable
//
// The logits are computed twice, seven products in all instead of five, and in return every output
// has one block that owns it (KERNELS section 1). out and lse are what the forward pass saved.
// dz_ij = p_ij (<dO_i, v_j> - D_i); rows that see one key have p = 1 and dz = 0 exactly.

#include "attention.cuh"

namespace bamtrain::kernels {

/// What the backward pass reads besides the inputs.
struct AttentionSaved {
  Rows<const bf16> out, dout;
  const float* lse;          // (B, H, T)
  const float* row_product;  // (B, H, T): D_i
};

// --- D_i ----------------------------------------------------------------------------------------

/// Launch with grid (ceil(T / 4), H, B) and kThreads threads: a warp per row.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads)
    attention_backward_rows(float* row_product, Rows<const bf16> out, Rows<const bf16> dout, int T,
                            int H) {
  const Lane l;
  const int t = static_cast<int>(device::block_index().x) * (kThreads / 32) + l.warp;
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  if (t >= T) return;  // the whole warp
  const auto* o = reinterpret_cast<const uint32_t*>(out.at(b, t, h));
  const auto* d = reinterpret_cast<const uint32_t*>(dout.at(b, t, h));
  float sum = 0;
  for (int n = l.lane; n < D / 2; n += 32) {
    sum += device::low_bf16(o[n]) * device::low_bf16(d[n]) +
           device::high_bf16(o[n]) * device::high_bf16(d[n]);
  }
  BAMTRAIN_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += device::shuffle_xor(device::kWholeWarp, sum, distance);
  }
  if (l.lane == 0) row_product[(static_cast<int64_t>(b) * H + h) * T + t] = sum;
}

// --- dq and dt ----------------------------------------------------------------------------------

template <int D>
constexpr size_t attention_backward_queries_shared() {
  return 6 * kTileBytes<D> + 2 * 2 * kTile * sizeof(float);
}

/// dq (B, T, H, D) and, with a scale, dscale (B, H, T) are written. Launch as the forward kernel.
template <int D, bool kTable, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 1)
    attention_backward_queries(AttentionInputs a, AttentionSaved saved, Rows<bf16> dq,
                               float* dscale) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int tiles = static_cast<int>(device::grid_size().x);
  const int i0 = kTile * (tiles - 1 - static_cast<int>(device::block_index().x));
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  const int kh = h / a.group, thread = 32 * l.warp + l.lane;
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress outputs = queries + kTileBytes<D>;  // dO
  const SharedAddress keys = outputs + kTileBytes<D>;
  const SharedAddress values = keys + 2 * kTileBytes<D>;
  float* const biases = reinterpret_cast<float*>(shared + 6 * kTileBytes<D>);
  const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const int64_t row_of_head = (static_cast<int64_t>(b) * a.H + h) * a.T;
  const int last_row = i0 + kTile <= a.T ? i0 + kTile - 1 : a.T - 1;
  const int first_tile = first_key[i0] / kTile, last_tile = i0 / kTile;
  const int widest_first = first_key[last_row];

  copy_tile<D>(queries, a.q, b, h, i0, a.T);
  copy_tile<D>(outputs, saved.dout, b, h, i0, a.T);
  copy_tile<D>(keys, a.k, b, kh, first_tile * kTile, a.T);
  copy_tile<D>(values, a.v, b, kh, first_tile * kTile, a.T);
  device::copy_async_commit();
  if (kTable) biases[thread] = bias_at(a, h, i0 - first_tile * kTile + thread - (kTile - 1));

  int rows[2], first[2];
  float t[2] = {1, 1}, lse[2] = {0, 0}, row_product[2] = {0, 0}, dt[2] = {0, 0};
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    rows[r] = i0 + l.warp * kWarpRows + l.row + 8 * r;
    const bool inside = rows[r] < a.T;
    first[r] = inside ? first_key[rows[r]] : rows[r] + 1;  // past the end: sees nothing
    if (!inside) continue;
    if (kScale != ScaleMode::none) t[r] = a.scale[row_of_head + rows[r]];
    lse[r] = saved.lse[row_of_head + rows[r]] * kLog2e;
    row_product[r] = saved.row_product[row_of_head + rows[r]];
  }
  const uint32_t warp_rows = static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>;
  const float factor = score_factor<D>();
  float sum[D / 8][4] = {};

  for (int tile = first_tile; tile <= last_tile; ++tile) {
    const int j0 = tile * kTile;
    const uint32_t stage = static_cast<uint32_t>((tile - first_tile) % 2), other = 1 - stage;
    float next_bias = 0;
    if (tile < last_tile) {
      copy_tile<D>(keys + other * kTileBytes<D>, a.k, b, kh, j0 + kTile, a.T);
      copy_tile<D>(values + other * kTileBytes<D>, a.v, b, kh, j0 + kTile, a.T);
      if (kTable) next_bias = bias_at(a, h, i0 - j0 - kTile + thread - (kTile - 1));
    }
    device::copy_async_commit();
    device::copy_async_wait<1>();
    device::barrier();

    float s[kTile / 8][4] = {}, dz[kTile / 8][4] = {};
    BAMTRAIN_UNROLL
    for (int step = 0; step < D / 16; ++step) {
      uint32_t row[4];
      load_a<D>(row, queries + warp_rows, step, l);
      multiply_transposed<D>(s, row, keys + stage * kTileBytes<D>, step, l);
      load_a<D>(row, outputs + warp_rows, step, l);
      multiply_transposed<D>(dz, row, values + stage * kTileBytes<D>, step, l);
    }
    const float* slice = biases + stage * 2 * kTile;
    const bool whole = j0 + kTile - 1 <= i0 && widest_first <= j0 && i0 + kTile <= a.T;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kTile / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int r = e / 2, j = j0 + 8 * n + 2 * l.pair + e % 2;
        const float bias = kTable ? slice[rows[r] - j - (i0 - j0) + kTile - 1] : 0.0f;
        const bool visible = (whole || (j <= rows[r] && j >= first[r])) && first[r] != rows[r];
        const float z = logit<kTable, kScale>(s[n][e], factor, t[r], bias);
        const float p = visible ? device::exp2_approx(z - lse[r]) : 0.0f;
        const float d = p * (dz[n][e] - row_product[r]);
        if (kScale == ScaleMode::content) dt[r] += d * s[n][e] * factor;
        if (kScale == ScaleMode::both) dt[r] += d * (s[n][e] * factor + bias);
        dz[n][e] = kScale == ScaleMode::none ? d : d * t[r];
      }
    }
    uint32_t ds[kTile / 16][4];
    as_operand(ds, dz);
    multiply<D>(sum, ds, keys + stage * kTileBytes<D>, l);
    if (kTable) biases[other * 2 * kTile + static_cast<uint32_t>(thread)] = next_bias;
    device::barrier();
  }
  device::copy_async_wait<0>();

  const float root = factor * kLn2;
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (kScale != ScaleMode::none) {
      dt[r] += device::shuffle_xor(device::kWholeWarp, dt[r], 1);
      dt[r] += device::shuffle_xor(device::kWholeWarp, dt[r], 2);
    }
    if (rows[r] >= a.T) continue;
    auto* to = reinterpret_cast<uint32_t*>(dq.at(b, rows[r], h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] = device::pack_bf16(sum[n][2 * r] * root, sum[n][2 * r + 1] * root);
    }
    // The logits are in base 2.
    if (kScale != ScaleMode::none && l.pair == 0) dscale[row_of_head + rows[r]] = dt[r] * kLn2;
  }
}

// --- dk, dv and the diagonals -------------------------------------------------------------------

/// Queries per tile here: registers hold dk and dv of 16 keys beside two tiles of logits.
template <int D>
constexpr int kBackwardQueries = D > 96    ? 16
                                 : D >= 64 ? 32
                                           : 64;

/// Distance between rows of the tile of db in shared memory, in floats: 8 more than a multiple of
/// 32, so that the pairs that a half-warp stores fall into different banks.
template <int D>
constexpr int kDiagonalStride = kBackwardQueries<D> + 8;

template <int D>
constexpr size_t attention_backward_keys_shared(bool table) {
  const int Q = kBackwardQueries<D>;
  return 2 * kTileBytes<D> + 4 * kTileBytes<D, Q> +
         sizeof(float) *
             static_cast<size_t>(4 * Q + (table ? 2 * kTile + kTile * kDiagonalStride<D> : 0));
}

/// Floats of one partial table: distances -(kTile - 1) .. T + kTile.
BAMTRAIN_BOTH int64_t partial_table_floats(int T) { return T + 2 * kTile; }

/// dk and dv (B, T, K, D) are written; with a table partial (B, H, parts, partial_table_floats(T))
/// too, entry kTile - 1 + d for distance d. Launch with grid (parts, K, B): a block takes every
/// parts-th tile of keys, so that the partial tables are few and each has one owner.
template <int D, bool kTable, ScaleMode kScale>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 1)
    attention_backward_keys(AttentionInputs a, AttentionSaved saved, Rows<bf16> dk, Rows<bf16> dv,
                            float* partial) {
  constexpr int Q = kBackwardQueries<D>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int part = static_cast<int>(device::block_index().x);
  const int parts = static_cast<int>(device::grid_size().x);
  const int kh = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  const int thread = 32 * l.warp + l.lane;
  const SharedAddress keys = device::shared_address(shared);
  const SharedAddress values = keys + kTileBytes<D>;
  const SharedAddress queries = values + kTileBytes<D>;          // two stages
  const SharedAddress outputs = queries + 2 * kTileBytes<D, Q>;  // dO, two stages
  float* const row_lse =
      reinterpret_cast<float*>(shared + 2 * kTileBytes<D> + 4 * kTileBytes<D, Q>);
  float* const row_product = row_lse + Q;
  float* const row_scale = row_product + Q;
  int* const row_first = reinterpret_cast<int*>(row_scale + Q);
  float* const slice = row_scale + 2 * Q;  // 2 kTile floats
  float* const db = slice + 2 * kTile;     // (kTile, diagonal_stride)
  const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const int64_t floats = partial_table_floats(a.T);
  const float factor = score_factor<D>(), root = factor * kLn2;
  const uint32_t warp_rows = static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>;

  if (kTable) {
    for (int g = 0; g < a.group; ++g) {
      float* slot =
          partial + ((static_cast<int64_t>(b) * a.H + kh * a.group + g) * parts + part) * floats;
      for (int64_t n = thread; n < floats; n += kThreads) slot[n] = 0;
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
    device::barrier();  // everyone is done with the keys before these
    copy_tile<D>(keys, a.k, b, kh, j0, a.T);
    copy_tile<D>(values, a.v, b, kh, j0, a.T);
    float sum_k[D / 8][4] = {}, sum_v[D / 8][4] = {};

    for (int g = 0; g < a.group; ++g) {
      const int h = kh * a.group + g;
      const int64_t row_of_head = (static_cast<int64_t>(b) * a.H + h) * a.T;
      float* slot = kTable ? partial + ((static_cast<int64_t>(b) * a.H + h) * parts + part) * floats
                           : nullptr;
      copy_tile<D, Q>(queries, a.q, b, h, j0, a.T);
      copy_tile<D, Q>(outputs, saved.dout, b, h, j0, a.T);
      device::copy_async_commit();
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
          row_scale[thread] = kScale != ScaleMode::none && inside ? a.scale[row_of_head + i] : 1.0f;
        }
        if (kTable && thread < Q + kTile)
          slice[thread] = bias_at(a, h, i0 - j0 + thread - (kTile - 1));
        device::copy_async_wait<1>();
        device::barrier();

        // Transposed: rows are keys, columns queries.
        float p[Q / 8][4] = {}, dz[Q / 8][4] = {};
        BAMTRAIN_NO_UNROLL  // registers: the next step's operands would be loaded early

            for (int step = 0; step < D / 16; ++step) {
          uint32_t row[4];
          load_a<D>(row, keys + warp_rows, step, l);
          multiply_transposed<D>(p, row, queries + stage * kTileBytes<D, Q>, step, l);
          load_a<D>(row, values + warp_rows, step, l);
          multiply_transposed<D>(dz, row, outputs + stage * kTileBytes<D, Q>, step, l);
        }
        BAMTRAIN_UNROLL
        for (int n = 0; n < Q / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) {
            const int key = l.warp * kWarpRows + l.row + e / 2 * 8, j = j0 + key;
            const int query = 8 * n + 2 * l.pair + e % 2, i = i0 + query;
            const float bias = kTable ? slice[query - key + kTile - 1] : 0.0f;
            const int first = row_first[query];
            const float t = kScale == ScaleMode::none ? 1.0f : row_scale[query];
            const bool visible = j <= i && j >= first, alone = first == i;
            const float z = logit<kTable, kScale>(p[n][e], factor, t, bias);
            const float prob = !visible ? 0.0f
                               : alone  ? 1.0f
                                        : device::exp2_approx(z - row_lse[query]);
            const float d = alone ? 0.0f : prob * (dz[n][e] - row_product[query]);
            p[n][e] = prob;
            dz[n][e] = kScale == ScaleMode::none ? d : d * t;
            if (kTable) {
              db[key * kDiagonalStride<D> + query] = kScale == ScaleMode::content ? d : dz[n][e];
            }
          }
        }
        uint32_t operand[Q / 16][4];
        as_operand(operand, p);
        multiply<D>(sum_v, operand, outputs + stage * kTileBytes<D, Q>, l);
        as_operand(operand, dz);
        multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q>, l);
        device::barrier();
        if (kTable && thread < Q + kTile - 1) {
          // Thread n sums distance i0 - j0 + n - 63: element (key, n - 63 + key).
          const int shift = thread - (kTile - 1);
          float sum = 0;
          for (int key = shift < 0 ? -shift : 0; key < kTile && key + shift < Q; ++key) {
            sum += db[key * kDiagonalStride<D> + key + shift];
          }
          slot[i0 - j0 + thread] += sum;
        }
      }
      device::copy_async_wait<0>();
      device::barrier();  // the stages are free for the next head
    }

    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int j = j0 + l.warp * kWarpRows + l.row + 8 * r;
      if (j >= a.T) continue;
      auto* to_k = reinterpret_cast<uint32_t*>(dk.at(b, j, kh));
      auto* to_v = reinterpret_cast<uint32_t*>(dv.at(b, j, kh));
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        to_k[4 * n + l.pair] =
            device::pack_bf16(sum_k[n][2 * r] * root, sum_k[n][2 * r + 1] * root);
        to_v[4 * n + l.pair] = device::pack_bf16(sum_v[n][2 * r], sum_v[n][2 * r + 1]);
      }
    }
  }
}

/// dtable (H, T) is written. Launch with grid (ceil(T / kThreads), H) and kThreads threads.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads)
    attention_backward_table(float* dtable, int64_t dtable_head, const float* partial, int B, int H,
                             int T, int parts) {
  const int d = static_cast<int>(device::block_index().x) * kThreads +
                static_cast<int>(device::thread_index().x);
  const int h = static_cast<int>(device::block_index().y);
  if (d >= T) return;
  float sum = 0;
  for (int b = 0; b < B; ++b) {
    for (int part = 0; part < parts; ++part) {
      const int64_t slot = (static_cast<int64_t>(b) * H + h) * parts + part;
      sum += partial[slot * partial_table_floats(T) + kTile - 1 + d];
    }
  }
  dtable[h * dtable_head + d] = sum;
}

}  // namespace bamtrain::kernels

#pragma once
// Attention, backward: dk, dv, and db by distance or by key, of stick-breaking. Weights and
// dz of a tile are formed as in attention_backward_queries.cuh, a warp 16 queries, and change hands
// through shared memory: in the products for dk and dv a warp owns 16 keys.

#include "attention_backward_keys.cuh"
#include "attention_sticks.cuh"
#include "attention_stream.cuh"

namespace bamtrain::kernels {

/// Floats from one row of db in shared memory to the next. Odd: threads whose diagonals begin in
/// different rows read different banks.
constexpr int kDbStride = kPart + 1;
/// Weights and dz in bf16, and db of a part.
constexpr size_t kExchangeBytes = 2 * kTileBytes<kTile>;
constexpr size_t kDbBytes = kTile * kDbStride * sizeof(float);

/// Columns of dk and dv that a block computes: as many as registers hold, in whole operands. With
/// two blocks for a tile the first writes what is not of a column, and what both have of D 80.
template <int D>
constexpr int kOwnColumns = D > 64 ? (D / 2 + 15) / 16 * 16 : D;
template <int D>
constexpr int kColumnBlocks = D > 64 ? 2 : 1;

/// Of tiles that are halves of those of the other kernels at some D.
template <int D>
using SticksRows = QueryRows<1, AnyForm, kTile, kQueryTile<D>>;

/// Launch with grid (parts, key heads in flight, kColumnBlocks), kThreads threads and this much
/// dynamic shared memory.
template <int D>
constexpr size_t attention_backward_keys_sticks_shared() {
  return (2 + 2 * kStages<D, AnyForm>)*kTileBytes<D> + kExchangeBytes + kDbBytes +
         (SticksRows<D>::kSliceFloats + kTile) * sizeof(float);
}

/// The 16 x 16 operand A at rows 16 `warp` and columns 16 `step` of the transpose of a tile (64,
/// 64) in shared memory.
BAMTRAIN_DEVICE void load_transposed(uint32_t (&a)[4], SharedAddress tile, int step,
                                     const Lane& l) {
  const int row = 16 * step + l.lane / 16 * 8 + l.lane % 8;
  const int column = l.warp * kWarpRows + l.lane / 8 % 2 * 8;
  device::ldmatrix_transposed(
      a, tile + static_cast<uint32_t>(row) * kRowBytes<kTile> + 2u * static_cast<uint32_t>(column));
}

/// Logits become weights, dP dz. `head`: of the queries, in flight. All lanes of the warp call.
BAMTRAIN_DEVICE void stick_gradients(Logits& z, Logits& dz, const AttentionInputs<bf16>& a,
                                     const BackwardSaved<bf16>& saved, const auto& own, int j0,
                                     int head, const Lane& l) {
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    float broken = 0, before = 0;
    if (own.inside(r)) {
      const float* const carry = saved.carry(a, head, j0, own.rows[r]);
      broken = carry[0];
      before = carry[1];
    }
    Logits share;
    stick_weights(z, share, broken, r, l);
    stick_adjoint(dz, z, share, before, r, l);
  }
}

/// dk and dv (B, T, K, D) are written; with numbers the keys' part is added to dnumbers (B, H, T),
/// which has the queries'; with a table partial (B, H, parts, slot_floats) is written too, as by
/// attention_backward_keys, of the key heads of all sequences from first_head on.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_backward_keys_sticks(AttentionInputs<bf16> a, BackwardSaved<bf16> saved,
                                   Rows<bf16> dk, Rows<bf16> dv, float* dnumbers, float* partial,
                                   int64_t slot_floats, int first_head) {
  constexpr int kBuffers = kStages<D, AnyForm>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane, group = a.H / a.K, tiles = (a.T + kTile - 1) / kTile;
  const int part = static_cast<int>(device::block_index().x);
  const int parts = static_cast<int>(device::grid_size().x);
  const int head = static_cast<int>(device::block_index().y);  // in flight
  const int b = (first_head + head) / a.K, kh = (first_head + head) % a.K;
  const SharedAddress keys = device::shared_address(shared);
  const SharedAddress values = keys + kTileBytes<D>;
  const SharedAddress queries = values + kTileBytes<D>;  // kBuffers of them
  const SharedAddress outputs = queries + kBuffers * kTileBytes<D>;
  const SharedAddress weights_tile = outputs + kBuffers * kTileBytes<D>;
  const SharedAddress gradients_tile = weights_tile + kTileBytes<kTile>;
  unsigned char* const exchange = shared + (2 + 2 * kBuffers) * kTileBytes<D>;
  auto* const p_tile = reinterpret_cast<uint32_t*>(exchange);
  auto* const ds_tile = reinterpret_cast<uint32_t*>(exchange + kTileBytes<kTile>);
  float* const db = reinterpret_cast<float*>(exchange + kExchangeBytes);  // (queries, kDbStride)
  float* const slice = reinterpret_cast<float*>(exchange + kExchangeBytes + kDbBytes);
  float* const row_sums = slice + SticksRows<D>::kSliceFloats;

  const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const float root = 1.0f / a.content_divisor;
  constexpr int kBoth = kColumnBlocks<D> * kOwnColumns<D> - D;  // columns of both blocks
  const int column0 = (kOwnColumns<D> - kBoth) * static_cast<int>(device::block_index().z);
  const bool table = a.table != nullptr && column0 == 0,
             of_numbers = a.numbers != nullptr && column0 == 0;
  const auto own_columns = static_cast<uint32_t>(2 * column0);  // bytes

  if (table) {
    for (int g = 0; g < group; ++g) {
      float* slot =
          partial + ((static_cast<int64_t>(b) * a.H + kh * group + g) * parts + part) * slot_floats;
      for (int64_t n = thread; n < slot_floats; n += kThreads) slot[n] = 0;
    }
  }

  for (int tile = part; tile < tiles; tile += parts) {
    const int j0 = tile * kTile;
    const int end = end_of_queries(first_key, j0, a.T);
    // Everyone is done with the keys before these: the last barrier of the loop over queries.
    copy_tile<D>(keys, a.k, b, kh, j0, a.T);
    copy_tile<D>(values, a.v, b, kh, j0, a.T);
    device::copy_async_commit();
    float sum_k[1][kOwnColumns<D> / 8][4] = {}, sum_v[1][kOwnColumns<D> / 8][4] = {};

    for (int g = 0; g < group; ++g) {
      const int h = kh * group + g;

      const int64_t row_of_head = (static_cast<int64_t>(b) * a.H + h) * a.T;
      float* slot = table ? partial + (row_of_head / a.T * parts + part) * slot_floats : nullptr;
      const LiveGroups groups(a, saved.rows, b, h, tile);
      const auto next = [&](int i0) {
        do {
          i0 += kTile;
        } while (i0 < end && !groups.any(i0, kTile / kLiveRows));
        return i0;
      };
      const auto copy = [&](int i0, uint32_t stage) {
        copy_tile<D>(queries + stage * kTileBytes<D>, a.q, b, h, i0, a.T);
        copy_tile<D>(outputs + stage * kTileBytes<D>, saved.dout, b, h, i0, a.T);
        device::copy_async_commit();
      };
      float dkey_number = 0;
      int i0 = next(j0 - kTile);
      uint32_t step = 0;
      if (i0 < end) copy(i0, 0);
      while (i0 < end) {
        const int after = next(i0);
        const uint32_t stage = step % kBuffers;
        const SticksRows<D> own(a, b, h, i0, root, row_sums, l);
        const int entries = own.has_slice(a) ? SticksRows<D>::kSliceFloats : 0;
        for (int n = 0; thread + n * kThreads < entries; ++n) {
          slice[thread + n * kThreads] = own.slice_entry(a, j0, thread, n);
        }

        if (kBuffers > 1 && after < end) {
          copy(after, (step + 1) % kBuffers);
          device::copy_async_wait<1>();
        } else {
          device::copy_async_wait<0>();
        }
        device::barrier();

        const bool live = groups.any(i0 + l.warp * kWarpRows, 1);

        for_parts(false, [&](int part_of_tile) {
          const int key0 = kPart * part_of_tile;
          const float* const slice_of_part = own.slice_of(a, slice, part_of_tile);
          const uint32_t from = part_bytes<D>(part_of_tile);
          GroupsOfLogits<1> z_group = {}, dz_group = {};
          Logits &z = z_group[0], &dz = dz_group[0];
          if (live && own.warp_sees(j0 + key0, kPart)) {
            multiply_part<D>(z_group, queries + stage * kTileBytes<D>, keys + from, l);
            multiply_part<D>(dz_group, outputs + stage * kTileBytes<D>, values + from, l);
            own.logits(
                z_group, [](int) { return WeightLine{}; }, a, slice_of_part, j0 + key0, l);
            stick_gradients(z, dz, a, saved, own, j0 + key0, head * group + g, l);
          }
          if (table || of_numbers) {
            const float u[] = {own.bias_scale(a, 0), own.bias_scale(a, 1)};
            own.for_elements([&](int r, int n, int e) {
              const int key = l.column(n, e);
              const float slope = table ? 1.0f : own.of_key(a, slice_of_part, r, j0 + key0, key);
              db[(own.rows[r] - i0) * kDbStride + key] = u[r] * dz[n][e] * slope;
            });
            device::barrier();
            if (table && thread < kTile + kPart - 1) {
              // Thread n sums distance i0 - j0 - key0 + n - 31: elements (key + n - 31, key).
              const int shift = thread - (kPart - 1);
              float* const sum = slot + i0 - j0 - key0 + shift + kTile - 1;
              float of_distance = *sum;
              for (int key = shift < 0 ? -shift : 0; key < kPart && key + shift < kTile; ++key) {
                of_distance += db[(key + shift) * kDbStride + key];
              }
              *sum = of_distance;
            }
            if (!table && thread / kPart == part_of_tile) {
              for (int row = 0; row < kTile; ++row) {
                dkey_number += db[row * kDbStride + thread % kPart];
              }
            }
            device::barrier();
          }
          BAMTRAIN_UNROLL
          for (int n = 0; n < kColumns; ++n) {
            BAMTRAIN_UNROLL
            for (int r = 0; r < 2; ++r) {
              const auto row = static_cast<uint32_t>(own.rows[r] - i0);
              const uint32_t at =
                  row * (kRowBytes<kTile> / 4) + static_cast<uint32_t>(key0 / 2 + 4 * n + l.pair);
              p_tile[at] = device::pack_bf16(z[n][2 * r], z[n][2 * r + 1]);
              ds_tile[at] =
                  device::pack_bf16(own.factor[r] * dz[n][2 * r], own.factor[r] * dz[n][2 * r + 1]);
            }
          }
        });
        device::barrier();
        uint32_t operand[1][kTile / 16][4];
        BAMTRAIN_UNROLL
        for (int s = 0; s < kTile / 16; ++s) load_transposed(operand[0][s], weights_tile, s, l);
        multiply<D>(sum_v, operand, outputs + stage * kTileBytes<D> + own_columns, l);
        BAMTRAIN_UNROLL
        for (int s = 0; s < kTile / 16; ++s) load_transposed(operand[0][s], gradients_tile, s, l);
        multiply<D>(sum_k, operand, queries + stage * kTileBytes<D> + own_columns, l);
        device::barrier();
        ++step;
        if (kBuffers == 1 && after < end) copy(after, 0);
        i0 = after;
      }
      if (of_numbers && thread < kTile && j0 + thread < a.T) {
        dnumbers[row_of_head + j0 + thread] += dkey_number;
      }
    }
    device::copy_async_wait<0>();
    device::barrier();

    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int j = j0 + l.warp * kWarpRows + l.row + 8 * r;
      if (j >= a.T) continue;
      bf16* const to_k = row_of(dk, b, j, kh) + column0;
      bf16* const to_v = row_of(dv, b, j, kh) + column0;
      BAMTRAIN_UNROLL
      for (int n = 0; n < kOwnColumns<D> / 8; ++n) {
        if (8 * n < kBoth && column0 > 0) continue;
        store_pair(to_k, n, l, sum_k[0][n][2 * r], sum_k[0][n][2 * r + 1]);
        store_pair(to_v, n, l, sum_v[0][n][2 * r], sum_v[0][n][2 * r + 1]);
      }
    }
  }
}

}  // namespace bamtrain::kernels

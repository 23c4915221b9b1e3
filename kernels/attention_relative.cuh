#pragma once
// Transformer-XL's bias (ops/mechanisms/transformer_xl.h) in bf16. Products with r are of tiles of
// queries and of distances: of query i and distance d belongs key i - d.

#include "attention_content.cuh"

namespace bamtrain::kernels {

/// b of the part: q is exact, r in two roundings, 16 bits of it, so that a key at the edge of a
/// support stays where it is. Launch with grid (tiles of queries, H, B), kThreads threads and this
/// much dynamic shared memory.
template <int D>
constexpr size_t relative_biases_shared() {
  return 3 * kTileBytes<D>;
}
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 3)
    relative_biases(AttentionInputs<bf16> a, ContentSums sums) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const PartQueries own(a);
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress vectors = queries + kTileBytes<D>, rests = vectors + kTileBytes<D>;
  const float* const of_keys = sums.of_keys + own.head * a.T;
  const float* const of_distances = sums.of_distances + static_cast<int64_t>(own.h) * a.T;
  const float* const r = a.relative.r + own.h * D;
  const float root = 1.0f / sqrtf(D);

  copy_tile<D>(queries, a.q, own.b, own.h, own.i0, a.T);
  device::copy_async_commit();
  const int distances = own.last - own.first_key[own.i0] + 1;
  BAMTRAIN_NO_UNROLL
  for (int d0 = 0; d0 < distances; d0 += kTile) {
    device::barrier();
    load_rounded<D>(shared + kTileBytes<D>, r, int64_t{a.H} * D, d0, a.T);
    load_rounded<D, true>(shared + 2 * kTileBytes<D>, r, int64_t{a.H} * D, d0, a.T);
    device::copy_async_wait<0>();
    device::barrier();
    for_parts(false, [&](int part) {
      GroupsOfLogits<1> product, rest;
      multiply_part<D>(product, queries, vectors + part_bytes<D>(part), l);
      multiply_part<D>(rest, queries, rests + part_bytes<D>(part), l);
      QueryRows<1>::for_elements([&](int row, int n, int e) {
        const int i = own.i0 + QueryRows<1>::group_row(l, 0) + l.row + 8 * row;
        const int d = d0 + part * kPart + l.column(n, e);
        const int64_t at = at_distance(a, own.head, own.first_key, i, d);
        if (at < 0) return;
        a.formed.b[at] =
            root * (product[0][n][e] + rest[0][n][e]) + of_keys[i - d] + of_distances[d];
      });
    });
  }
}

/// Whether a query of the tile from i0 on sees a key at distance d0 or further. The same in all
/// warps.
BAMTRAIN_DEVICE bool sees_any(const int32_t* first_key, int i0, int end, int d0, const Lane& l) {
  bool any = false;
  BAMTRAIN_UNROLL
  for (int i = i0 + l.lane; i < i0 + kTile; i += 32) any |= i < end && i - first_key[i] >= d0;
  return device::ballot(device::kWholeWarp, any) != 0;
}

/// The sums of dz q and of db by distance, added to those of the parts before; of the last, dr.
/// Launch with grid (tiles of distances, H), kThreads threads and a tile of dynamic shared memory.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, D > 64   ? 2
                                                 : D > 48 ? 3
                                                          : 4)
    relative_distances(ContentGradients<bf16> g) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<bf16>& a = g.in;
  const Lane l;
  const int d0 = kTile * static_cast<int>(device::block_index().x);
  const int h = static_cast<int>(device::block_index().y);
  const int own0 = d0 + l.warp * kWarpRows;
  const SharedAddress tile = device::shared_address(shared);
  const int end = a.end_of_queries();
  const int64_t stride = int64_t{a.H} * D;
  float* const to = g.bias.dr + h * D;

  float sum[1][D / 8][4] = {}, of_distances[2] = {};
  if (!g.first_of_all) {
    for_sums<D>(sum[0], to, stride, own0, a.T, l, [](const float& from, float& x) { x = from; });
  }
  const int begin = d0 > a.formed.first ? d0 : a.formed.first;
  for (int b = 0; b < a.B; ++b) {
    const int64_t head = static_cast<int64_t>(b) * a.H + h;
    const int32_t* const first_key = a.first_key + static_cast<int64_t>(b) * a.T;
    BAMTRAIN_NO_UNROLL
    for (int i0 = begin; i0 < end; i0 += kTile) {
      if (!sees_any(first_key, i0, end, d0, l)) continue;
      device::barrier();
      copy_tile<D>(tile, a.q, b, h, i0, a.T);
      device::copy_async_commit();
      uint32_t operand[1][kTile / 16][4];
      form_operand(
          operand,
          [&](int r, int row, int column) {
            const int i = i0 + column;
            const int64_t at = at_distance(a, head, first_key, i, own0 + row);
            if (at < 0) return 0.0f;
            const float db = scale_of(a, head, i, a.scale_bias) * a.formed.b[at];
            of_distances[r] += db;
            return db;
          },
          l);
      device::copy_async_wait<0>();
      device::barrier();
      multiply<D>(sum, operand, tile, l);
    }
  }
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    of_distances[r] += device::shuffle_xor(device::kWholeWarp, of_distances[r], 1);
    of_distances[r] += device::shuffle_xor(device::kWholeWarp, of_distances[r], 2);
    const int d = own0 + l.row + 8 * r;
    float* const all = g.sums.db_of_distances + static_cast<int64_t>(h) * a.T + d;
    if (d < a.T && !g.first_of_all) of_distances[r] += *all;
    device::sync_warp();  // it is read by the four lanes of the row before one of them writes it
    if (d < a.T && l.pair == 0) *all = of_distances[r];
  }
  if (!g.last_of_all) {
    for_sums<D>(sum[0], to, stride, own0, a.T, l, [](float& x, float from) { x = from; });
    return;
  }
  const float root = 1.0f / sqrtf(D);
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int c = 0; c < 2; ++c) {
        float& x = sum[0][n][2 * r + c];
        x = root * (x + of_distances[r] * a.relative.w[h * D + l.column(n, c)]);
      }
    }
  }
  for_sums<D>(sum[0], to, stride, own0, a.T, l, [](float& x, float from) { x = from; });
}

}  // namespace bamtrain::kernels

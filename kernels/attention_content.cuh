#pragma once
// What kernels of biases that read queries and keys share: operands of tensor cores that lie in
// AttentionInputs::formed, and the products of p and dz with queries, keys and dO.
//
// formed_keys: of the block of queries of attention_backward_queries.cuh that a query is in, the
// tiles of keys that one of them sees have p and dz, 0 where there is no weight. Every key that the
// query sees lies there.

#include "attention_backward_keys.cuh"
#include "attention_content.h"
#include "attention_rows.cuh"

namespace bamtrain::kernels {

/// Operands A (16, 16 S): f(r, row, column) and that of the next column, row l.row + 8 r.
template <int S, class F>
BAMTRAIN_DEVICE void form_operand_of_pairs(uint32_t (&a)[1][S][4], const F& f, const Lane& l) {
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < 4; ++n) {
      const int r = n % 2, row = l.row + 8 * r, column = 16 * s + 8 * (n / 2) + 2 * l.pair;
      const TwoFloats two = f(r, row, column);
      a[0][s][n] = device::pack_bf16(two.x, two.y);
    }
  }
}
template <int S, class F>
BAMTRAIN_DEVICE void form_operand(uint32_t (&a)[1][S][4], const F& f, const Lane& l) {
  form_operand_of_pairs(
      a,
      [&](int r, int row, int column) {
        return TwoFloats{f(r, row, column), f(r, row, column + 1)};
      },
      l);
}

/// t of row i, or u.
BAMTRAIN_DEVICE float scale_of(const AttentionInputs<bf16>& a, int64_t head, int i, bool wanted) {
  return wanted && a.scale != nullptr && i < a.T ? a.scale[head * a.T + i] : 1.0f;
}

/// Rows [t0, t0 + 64) of x (rows, D) in fp32 from one row to the next `stride`, rounded, as a tile;
/// kRest: what the rounding has left. Rows past `end` become zero.
template <int D, bool kRest = false>
BAMTRAIN_DEVICE void load_rounded(unsigned char* tile, const float* x, int64_t stride, int t0,
                                  int end) {
  constexpr int kChunks = D / 8;
  BAMTRAIN_NO_UNROLL
  for (int n = static_cast<int>(device::thread_index().x); n < kTile * kChunks; n += kThreads) {
    const int row = n / kChunks, c = 8 * (n % kChunks), t = t0 + row;
    Words packed = {};
    if (t < end) {
      float v[8];
      load_vector(v, x + t * stride + c);
      BAMTRAIN_UNROLL
      for (int m = 0; kRest && m < 8; ++m) v[m] -= rounded_to<bf16>(v[m]);
      BAMTRAIN_UNROLL
      for (int m = 0; m < 4; ++m) packed.w[m] = device::pack_bf16(v[2 * m], v[2 * m + 1]);
    }
    *reinterpret_cast<Words*>(tile + row * kRowBytes<D> + 2 * c) = packed;
  }
}

/// The elements of a warp's 16 rows and all columns of an accumulator in fp32 memory (T, heads, D):
/// f(element, value) of rows below `end`.
template <int D, class F>
BAMTRAIN_DEVICE void for_sums(float (&sum)[D / 8][4], float* x, int64_t stride, int t0, int end,
                              const Lane& l, const F& f) {
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int t = t0 + l.row + 8 * r;
    if (t >= end) continue;
    float* const row = x + t * stride;
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      f(row[l.column(n, 0)], sum[n][2 * r]);
      f(row[l.column(n, 1)], sum[n][2 * r + 1]);
    }
  }
}

/// Where in AttentionInputs::formed query i and distance d of a head are; -1: it sees no such key.
BAMTRAIN_DEVICE int64_t at_distance(const AttentionInputs<bf16>& a, int64_t head,
                                    const int32_t* first_key, int i, int d) {
  const int j = i - d;
  return i < a.end_of_queries() && j >= first_key[i] ? a.formed.row(head, i) + j : -1;
}

/// The 64 queries of one head that a block of a grid (tiles of queries, H, B) owns, of the part.
struct PartQueries {
  int b, h, i0;
  int end, last;             // of the part, and the block's last query
  int64_t head;              // counted over all sequences
  const int32_t* first_key;  // of the sequence

  BAMTRAIN_DEVICE explicit PartQueries(const AttentionInputs<bf16>& a)
      : b(static_cast<int>(device::block_index().z)),
        h(static_cast<int>(device::block_index().y)),
        i0(a.formed.first + kTile * static_cast<int>(device::block_index().x)),
        end(a.end_of_queries()),
        last((i0 + kTile < end ? i0 + kTile : end) - 1),
        head(static_cast<int64_t>(b) * a.H + h),
        first_key(a.first_key + static_cast<int64_t>(b) * a.T) {}
};

/// Scores of the part, <q, k> / content_divisor. Launch with grid (tiles of queries, H, B),
/// kThreads threads and two tiles of dynamic shared memory.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 4) content_scores(AttentionInputs<bf16> a) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const PartQueries own(a);
  const SharedAddress queries = device::shared_address(shared), keys = queries + kTileBytes<D>;
  const float root = 1.0f / a.content_divisor;
  copy_tile<D>(queries, a.q, own.b, own.h, own.i0, a.T);
  const int row0 = own.i0 + QueryRows<1>::group_row(l, 0) + l.row;
  float* const to = a.formed.s + a.formed.row(own.head, row0);
  BAMTRAIN_NO_UNROLL
  for (int j0 = own.first_key[own.i0] / kTile * kTile; j0 <= own.last; j0 += kTile) {
    device::barrier();
    copy_tile<D>(keys, a.k, own.b, own.h / (a.H / a.K), j0, a.T);
    device::copy_async_commit();
    device::copy_async_wait<0>();
    device::barrier();
    for_parts(false, [&](int part) {
      GroupsOfLogits<1> product;
      multiply_part<D>(product, queries, keys + part_bytes<D>(part), l);
      BAMTRAIN_UNROLL
      for (int r = 0; r < 2; ++r) {
        if (row0 + 8 * r >= own.end) continue;
        float* const row = to + 8 * r * a.formed.stride + j0 + part * kPart;
        BAMTRAIN_UNROLL
        for (int n = 0; n < kColumns; ++n) {
          device::store_two(row + l.column(n, 0), root * product[0][n][2 * r],
                            root * product[0][n][2 * r + 1]);
        }
      }
    });
  }
}

/// dq of the part, from dz of scores and of biases. Launch with grid (tiles of queries, H, B),
/// kThreads threads and a tile of dynamic shared memory.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2) content_queries(ContentGradients<bf16> g) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<bf16>& a = g.in;
  const Lane l;
  const PartQueries own(a);
  const SharedAddress tile = device::shared_address(shared);
  const int own0 = own.i0 + l.warp * kWarpRows;
  const float root = 1.0f / a.content_divisor;
  float of_scores[2], of_biases[2];
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int i = own0 + l.row + 8 * r;
    of_scores[r] = root * scale_of(a, own.head, i, !reads_scores(a));
    of_biases[r] = scale_of(a, own.head, i, a.scale_bias) / sqrtf(D);
  }

  float sum[1][D / 8][4] = {};
  uint32_t operand[1][kTile / 16][4];
  const float* const dz = a.formed.b + a.formed.row(own.head, own0 + l.row);
  BAMTRAIN_NO_UNROLL
  for (int j0 = own.first_key[own.i0] / kTile * kTile; j0 <= own.last; j0 += kTile) {
    device::barrier();
    copy_tile<D>(tile, a.k, own.b, own.h / (a.H / a.K), j0, a.T);
    device::copy_async_commit();
    form_operand_of_pairs(
        operand,
        [&](int r, int row, int column) {
          if (own0 + row >= own.end) return TwoFloats{};
          const auto two =
              *reinterpret_cast<const TwoFloats*>(dz + 8 * r * a.formed.stride + j0 + column);
          return TwoFloats{of_scores[r] * two.x, of_scores[r] * two.y};
        },
        l);
    device::copy_async_wait<0>();
    device::barrier();
    multiply<D>(sum, operand, tile, l);
  }
  const int distances = a.relative.r != nullptr ? own.last - own.first_key[own.i0] + 1 : 0;
  BAMTRAIN_NO_UNROLL
  for (int d0 = 0; d0 < distances; d0 += kTile) {
    device::barrier();
    load_rounded<D>(shared, a.relative.r + own.h * D, int64_t{a.H} * D, d0, a.T);
    form_operand(
        operand,
        [&](int r, int row, int column) {
          const int64_t at = at_distance(a, own.head, own.first_key, own0 + row, d0 + column);
          return at >= 0 ? of_biases[r] * a.formed.b[at] : 0.0f;
        },
        l);
    device::barrier();
    multiply<D>(sum, operand, tile, l);
  }
  for (int n0 = 0; n0 < a.contextual.count; n0 += kTile) {
    device::barrier();
    BAMTRAIN_NO_UNROLL
    for (int n = static_cast<int>(device::thread_index().x); n < kTile * D / 2; n += kThreads) {
      const int position = n0 + n % kTile, c = 2 * (n / kTile);
      const float* const E = a.contextual.positions + c * a.contextual.count + position;
      const bool inside = position < a.contextual.count;
      *reinterpret_cast<uint32_t*>(shared + n % kTile * kRowBytes<D> + 2 * c) =
          device::pack_bf16(inside ? E[0] : 0.0f, inside ? E[a.contextual.count] : 0.0f);
    }
    form_operand(
        operand,
        [&](int, int row, int column) {
          const int i = own0 + row, position = n0 + column;
          if (i >= own.end || position >= a.contextual.count) return 0.0f;
          return g.sums.of_positions[(own.head * a.T + i) * a.contextual.count + position];
        },
        l);
    device::barrier();
    multiply<D>(sum, operand, tile, l);
  }
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int i = own0 + l.row + 8 * r;
    if (i >= own.end) continue;
    bf16* const to = row_of(g.dq, own.b, i, own.h);
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      store_pair(to, n, l, sum[0][n][2 * r], sum[0][n][2 * r + 1]);
    }
  }
}

/// Operands A (16, 64) of 16 keys as rows and 64 queries as columns, of which `end` are there:
/// f(r, column, x), key l.row + 8 r. `x`: of key l.row and query 2 l.pair, in an array of
/// AttentionInputs::formed.
template <class F>
BAMTRAIN_DEVICE void form_keys(uint32_t (&a)[1][kTile / 16][4], const float* x, int64_t stride,
                               int end, const Lane& l, const F& f) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < kTile / 8; ++n) {
    const int column = 8 * n + 2 * l.pair;
    float of_key[2][2];
    BAMTRAIN_UNROLL
    for (int c = 0; c < 2; ++c) {
      BAMTRAIN_UNROLL
      for (int r = 0; r < 2; ++r) {
        of_key[r][c] = column + c < end ? f(r, column + c, x[8 * r]) : 0.0f;
      }
      x += stride;
    }
    x += 6 * stride;
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      a[0][n / 2][n % 2 * 2 + r] = device::pack_bf16(of_key[r][0], of_key[r][1]);
    }
  }
}

/// dk and dv from p and dz of the part: a block owns a tile of keys of a key head. Launch with grid
/// (tiles of keys, K, B), kThreads threads and this much dynamic shared memory.
template <int D>
constexpr size_t content_keys_shared() {
  return 2 * kTileBytes<D>;
}
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2) content_keys(ContentGradients<bf16> g) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<bf16>& a = g.in;
  const Lane l;
  const int j0 = kTile * static_cast<int>(device::block_index().x);
  const int kh = static_cast<int>(device::block_index().y), group = a.H / a.K;
  const int b = static_cast<int>(device::block_index().z);
  const int own0 = j0 + l.warp * kWarpRows;  // the warp's first key
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress outputs = queries + kTileBytes<D>;
  const int64_t stride = int64_t{a.K} * a.D;
  const int end_of_part = a.end_of_queries();
  int end = end_of_queries(a.first_key + static_cast<int64_t>(b) * a.T, j0, a.T);
  end = end < end_of_part ? end : end_of_part;
  const bool relative = a.relative.r != nullptr;
  const bool scaled = !reads_scores(a);  // by t, of scores

  float sum_k[1][D / 8][4] = {}, sum_v[1][D / 8][4] = {};
  if (!g.first) {
    const auto load = [](const float& from, float& to) { to = from; };
    for_sums<D>(sum_k[0], g.sums.dk + kh * a.D, stride, own0, a.T, l, load);
    for_sums<D>(sum_v[0], g.sums.dv + kh * a.D, stride, own0, a.T, l, load);
  }
  for (int h = kh * group; h < (kh + 1) * group; ++h) {
    const int64_t head = static_cast<int64_t>(b) * a.H + h;
    float of_keys[2] = {};
    for (int i0 = j0 > a.formed.first ? j0 : a.formed.first; i0 < end; i0 += kTile) {
      device::barrier();
      copy_tile<D>(queries, a.q, b, h, i0, a.T);
      copy_tile<D>(outputs, g.dout, b, h, i0, a.T);
      device::copy_async_commit();
      device::copy_async_wait<0>();
      device::barrier();
      // One after the other, for the registers.
      uint32_t operand[1][kTile / 16][4];
      const int64_t at = a.formed.row(head, i0 + 2 * l.pair) + own0 + l.row;
      form_keys(operand, a.formed.b + at, a.formed.stride, end - i0, l,
                [&](int r, int column, float dz) {
                  if (relative) of_keys[r] += dz * scale_of(a, head, i0 + column, a.scale_bias);
                  return dz * scale_of(a, head, i0 + column, scaled);
                });
      multiply<D>(sum_k, operand, queries, l);
      form_keys(operand, a.formed.p + at, a.formed.stride, end - i0, l,
                [](int, int, float p) { return p; });
      multiply<D>(sum_v, operand, outputs, l);
    }
    if (!relative) continue;
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      of_keys[r] += device::shuffle_xor(device::kWholeWarp, of_keys[r], 1);
      of_keys[r] += device::shuffle_xor(device::kWholeWarp, of_keys[r], 2);
      const int j = own0 + l.row + 8 * r;
      if (l.pair != 0 || j >= a.T) continue;
      float& to = g.sums.db_of_keys[head * a.T + j];
      to = g.first ? of_keys[r] : to + of_keys[r];
    }
  }
  if (!g.last) {
    const auto store = [](float& to, float from) { to = from; };
    for_sums<D>(sum_k[0], g.sums.dk + kh * a.D, stride, own0, a.T, l, store);
    for_sums<D>(sum_v[0], g.sums.dv + kh * a.D, stride, own0, a.T, l, store);
    return;
  }
  device::sync_warp();  // db_of_keys is read by the lanes of its key
  const float root = 1.0f / a.content_divisor, relative_root = 1.0f / sqrtf(D);
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int j = own0 + l.row + 8 * r;
    if (j >= a.T) continue;
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      sum_k[0][n][2 * r] *= root;
      sum_k[0][n][2 * r + 1] *= root;
    }
    for (int h = kh * group; relative && h < (kh + 1) * group; ++h) {
      const float db =
          relative_root * g.sums.db_of_keys[(static_cast<int64_t>(b) * a.H + h) * a.T + j];
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        sum_k[0][n][2 * r] += db * a.relative.u[h * D + l.column(n, 0)];
        sum_k[0][n][2 * r + 1] += db * a.relative.u[h * D + l.column(n, 1)];
      }
    }
    bf16* const to_k = row_of(g.dk, b, j, kh);
    bf16* const to_v = row_of(g.dv, b, j, kh);
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      store_pair(to_k, n, l, sum_k[0][n][2 * r], sum_k[0][n][2 * r + 1]);
      store_pair(to_v, n, l, sum_v[0][n][2 * r], sum_v[0][n][2 * r + 1]);
    }
  }
}

}  // namespace bamtrain::kernels

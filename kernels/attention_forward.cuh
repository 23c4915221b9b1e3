#pragma once
// Softmax, forward: one block per 64 or 128 queries of one head, online softmax in base 2 while
// keys and values stream by, tiles that nobody sees never loaded.

#include "attention_stream.cuh"

namespace bamtrain::kernels {

/// Keys per tile: what leaves room for several blocks in shared memory and registers.
template <int D>
constexpr int kForwardKeys = D > 16 ? 32 : 64;
template <int D, class Form>
using ForwardRows = QueryRows<kRowTiles<D>, Form, kForwardKeys<D>>;
template <int D, class Form>
using ForwardStream = KeyStream<D, Form, ForwardRows<D, Form>>;

/// Launch with grid (tiles of queries, H, B), kThreads threads and this much dynamic shared memory.
template <int D, class Form>
constexpr size_t attention_forward_shared() {
  using Stream = ForwardStream<D, Form>;
  return kTileBytes<D, kQueryTile<D>> + 2 * Stream::kBuffers * Stream::kBytes +
         sizeof(float) * (Stream::kSlicesFloats + (Form::kFormula ? kQueryTile<D> : 0));
}

/// Blocks on a multiprocessor, here and in the backward kernels: the most that registers allow
/// without spilling.
template <int D, class Form>
constexpr int kForwardBlocks = (D > 64 || D <= 32) && !Form::kFormed && !Form::kFire ? 3 : 2;

/// out (B, T, H, D) and lse (B, H, T) are written, of the queries whose bias was formed or of all.
template <int D, class Form>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kForwardBlocks<D, Form>)
    attention_forward_queries(AttentionInputs<bf16> a, Rows<bf16> out, float* lse) {
  using Block = ForwardRows<D, Form>;
  using Stream = ForwardStream<D, Form>;
  constexpr int M = Block::kGroups, kRows = Block::kRows;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z), kh = h / (a.H / a.K);
  // The longest rows first, so that short ones fill the gaps at the end of a grid.
  const int tiles = static_cast<int>(device::grid_size().x);
  const int i0 = Block::block_begin(a, tiles - 1 - static_cast<int>(device::block_index().x));
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress keys = queries + kTileBytes<D, kQueryTile<D>>;
  const SharedAddress values = keys + Stream::kBuffers * Stream::kBytes;
  auto* const slices = reinterpret_cast<float*>(shared + kTileBytes<D, kQueryTile<D>> +
                                                2 * Stream::kBuffers * Stream::kBytes);
  const Stream stream = {keys, values, slices, nullptr, kh};
  Stream::template copy<kQueryTile<D>>(queries, a.q, b, h, i0, a.T);
  device::copy_async_commit();
  const Block own(a, b, h, i0, 1.0f / a.content_divisor, slices + Stream::kSlicesFloats, l);

  float sum_out[M][D / 8][4] = {};
  float maximum[kRows], sum[kRows];
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    maximum[r] = kMinusInfinity;
    sum[r] = 0;
  }
  const auto add_part = [&](GroupsOfLogits<M>& z, const StreamedTile& of, int part) {
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      float highest = maximum[r];
      own.for_row(r, [&](int n, int e) { highest = fmaxf(highest, z[r / 2][n][e]); });
      highest = fmaxf(highest, device::shuffle_xor(device::kWholeWarp, highest, 1));
      highest = fmaxf(highest, device::shuffle_xor(device::kWholeWarp, highest, 2));
      // A row that has seen no key yet keeps nothing and adds nothing.
      const float base = highest == kMinusInfinity ? 0.0f : highest;
      const float keep = device::exp2_approx(maximum[r] - base);
      maximum[r] = highest;
      sum[r] *= keep;
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        sum_out[r / 2][n][r % 2 * 2] *= keep;
        sum_out[r / 2][n][r % 2 * 2 + 1] *= keep;
      }
      own.for_row(r, [&](int n, int e) {
        z[r / 2][n][e] = device::exp2_approx(z[r / 2][n][e] - base);
        sum[r] += z[r / 2][n][e];
      });
    }
    Operand<bf16, kColumns> p[M];
    BAMTRAIN_UNROLL
    for (int m = 0; m < M; ++m) as_operand(p[m], z[m]);
    stream.add_products(sum_out, p, values, stream.buffer(of), part, l);
  };
  stream.walk(
      own, a, own.first_tile, true, [](int tile) { return tile + 1; },
      [&](const StreamedTile& of) {
        const auto in_base_2 = [](int) { return WeightLine{kLog2e, 0.0f}; };
        stream.template with_logits<true>(
            own, a, queries, of, false, in_base_2, l,
            [&](GroupsOfLogits<M>& z, int, int part) { add_part(z, of, part); });
      },
      [] { return false; });

  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 1);
    sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 2);
    if (!own.inside(r)) continue;
    store_row<D>(out, own, r, sum_out[r / 2], 1.0f / sum[r], l);
    if (l.pair == 0) {
      lse[own.of_row(a, r)] = (maximum[r] + device::log2_approx(sum[r])) * kLn2;
    }
  }
}

}  // namespace bamtrain::kernels

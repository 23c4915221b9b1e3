#pragma once
// Fused attention, backward, without atomics. Kernels in this order:
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
#include "vectors.cuh"

namespace bamtrain::kernels {

/// What the backward pass reads besides the inputs.
struct AttentionSaved {
  Rows<const bf16> dout;
  const float* lse;          // (B, H, T)
  const float* row_product;  // (B, H, T): D_i
};

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

}  // namespace bamtrain::kernels

#pragma once
// Fused attention on a device: bf16 activations, everything else fp32, sm_80 and later. See
// ops/attention.h for the mathematics. attention_reference.h has the
// same in plain loops.

#include <algorithm>
#include <cstdint>

#include "launch.h"
#include "priors/fire.h"

namespace bamtrain::kernels {

using device::bf16;

/// The head dimensions for which the fused kernels exist.
constexpr int kHeadDims[] = {16, 32, 48, 64, 96, 128};
constexpr bool has_head_dim(int D) {
  for (int d : kHeadDims) {
    if (d == D) return true;
  }
  return false;
}

constexpr int kLongest = 1 << 30;  // positions of a sequence

/// A (B, T, heads, D) tensor: strides in elements, the innermost dimension contiguous. For the
/// fused kernels the strides are multiples of 8 and the data is aligned to 16 bytes. q, k and v
/// may lie in one fused tensor, and their gradients in another.
template <class Element>
struct Rows {
  Element* data = nullptr;
  int64_t batch = 0, row = 0, head = 0;
};

/// FireBias of ops/attention.h. Neither beside a table nor beside sums.
struct FireInputs {
  const float *psi = nullptr, *psi_dc = nullptr;    // (>= T), by distance. Null: no such bias
  const float* inverse = nullptr;                   // (>= T), by position
  const int32_t* ends = nullptr;                    // (>= T, kFireHidden), by position
  const float *slope = nullptr, *offset = nullptr;  // (H, kFireSegments)
  const int32_t* positions = nullptr;               // (B, T): of a query in its document
};

/// What attention reads. A: float or bf16; the fused kernels take bf16.
template <class A>
struct AttentionInputs {
  int B = 0, T = 0, H = 0, K = 0, D = 0;  // K divides H; query head h reads key head h / (H / K)
  float content_divisor = 0;              // s = <q, k> / content_divisor
  Rows<const A> q;                        // (B, T, H, D)
  Rows<const A> k, v;                     // (B, T, K, D)
  const float* table = nullptr;           // (H, >= T): b at (h, i - j). Null: b = 0
  int64_t table_head = 0;                 // from one head of the table to the next
  const double* sums = nullptr;           // (B, H, T): b from x = S_j - S_i. Not beside a table
  bool log_square = false;                // b = -log(1 + x^2) instead of x
  FireInputs fire;
  const float* scale = nullptr;        // (B, H, T): t. Null: t = 1
  bool scale_bias = false;             // z = t (s + b) instead of t s + b
  const int32_t* first_key = nullptr;  // (B, T): row i sees keys first_key[i] .. i.
                                       // Non-decreasing, in [0, i]
};

template <class A>
struct AttentionForward {
  AttentionInputs<A> in;
  Rows<A> out;           // (B, T, H, D), written
  float* lse = nullptr;  // (B, H, T), written
};

template <class A>
struct AttentionBackward {
  AttentionInputs<A> in;
  Rows<const A> out, dout;     // (B, T, H, D)
  const float* lse = nullptr;  // (B, H, T), as the forward pass left it
  Rows<A> dq;                  // (B, T, H, D), written
  Rows<A> dk, dv;              // (B, T, K, D), written
  float* dtable = nullptr;     // (H, T), written where there is a table
  int64_t dtable_head = 0;     // from one head of dtable to the next
  float* dscale = nullptr;     // (B, H, T), written where there is a scale
  float* dsums = nullptr;      // (B, H, T), written where there are sums
  // Written where fire is: (H, kFireSegments, 2), and (B, H, T) each, as AttentionGradients says.
  double* dfire = nullptr;
  float *dfire_u = nullptr, *dfire_psi = nullptr;
  // Scratch.
  float* row_product = nullptr;  // attention_row_products floats
  // attention_partial_floats floats, where there is a table; attention_fire_floats, where fire is.
  float* partial = nullptr;
};

/// Enqueues the forward pass: one kernel.
/// Refuses a D that is not one of kHeadDims, sizes that are not positive or past a grid's limits,
/// and strides or addresses that 16-byte accesses do not take.
device::LaunchStatus attention_forward(const AttentionForward<bf16>& f, device::Stream stream);

/// Enqueues the backward pass: four kernels, three without a table or fire. Refuses what the
/// forward pass refuses.
device::LaunchStatus attention_backward(const AttentionBackward<bf16>& g, device::Stream stream);

/// Floats of AttentionBackward::row_product.
constexpr int64_t attention_row_products(int B, int T, int H) { return int64_t{B} * H * T; }

/// Rows and keys of a tile.
constexpr int kTile = 64;
constexpr int attention_tiles(int T) { return (T + kTile - 1) / kTile; }

/// Queries of a block of the kernels that own queries, and those blocks.
constexpr int attention_query_rows(int D) { return D <= 64 ? 2 * kTile : kTile; }
constexpr int attention_query_tiles(int T, int D) {
  return (T + attention_query_rows(D) - 1) / attention_query_rows(D);
}

/// Blocks among which the backward pass divides the key tiles of one key head, each with partial
/// tables of its own: one per tile, or with a table as many as make about kTableBlocks in all, so
/// that partial tables take O(T) memory.
constexpr int kTableBlocks = 1024;
constexpr int attention_parts(int B, int T, int K, bool table) {
  const int64_t wanted = std::max<int64_t>(1, kTableBlocks / (int64_t{B} * K));
  return table ? static_cast<int>(std::min<int64_t>(attention_tiles(T), wanted))
               : attention_tiles(T);
}

/// Floats of one partial table: distances -(kTile - 1) .. T + kTile.
constexpr int64_t attention_partial_table(int T) { return int64_t{T} + 2 * kTile; }

/// Floats of AttentionBackward::partial, enough for any smaller B or T too.
constexpr int64_t attention_partial_floats(int B, int T, int H, int K) {
  const int64_t slots = std::min(int64_t{B} * attention_tiles(T),
                                 std::max<int64_t>(B, kTableBlocks / K));  // >= B attention_parts
  return slots * H * attention_partial_table(T);
}

/// Sums of one head and tile of queries of fire: of db and of db u for each segment.
constexpr int kFirePartial = 2 * kFireSegments;
/// Floats of AttentionBackward::partial with fire.
constexpr int64_t attention_fire_floats(int B, int T, int H, int D) {
  return int64_t{B} * H * attention_query_tiles(T, D) * kFirePartial;
}

}  // namespace bamtrain::kernels

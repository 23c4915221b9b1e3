#pragma once
// Attention on a device: bf16 or fp32 activations, everything else fp32, sm_80 and later. See
// ops/attention.h for the mathematics. The kernels are templates of a form (attention_forms.cuh):
// softmax has one for every form of logit, and one more takes every normalizer with every form of
// logit. attention_reference.h has the same in plain loops.

#include <algorithm>
#include <cstdint>

#include "attention_biases.h"
#include "launch.h"
#include "normalizers/list.h"
#include "normalizers/live_tiles.h"

namespace bamtrain::kernels {

using device::bf16;

/// The head dimensions for which the kernels exist.
constexpr int kHeadDims[] = {16, 32, 48, 64, 80, 96, 128};
constexpr bool has_head_dim(int D) {
  for (int d : kHeadDims) {
    if (d == D) return true;
  }
  return false;
}

constexpr int kLongest = 1 << 30;  // positions of a sequence

/// A (B, T, heads, D) tensor: strides in elements, the innermost dimension contiguous. On
/// tiles strides are multiples of 16 bytes and the data is aligned to as many. q, k and v may lie
/// in one fused tensor, and their gradients in another.
template <class Element>
struct Rows {
  Element* data = nullptr;
  int64_t batch = 0, row = 0, head = 0;
};

/// NormalizerForm, and Attention::alphas.
struct NormalizerInputs {
  NormalizerKind kind = NormalizerKind::softmax;
  float alpha = 0;                // entmax
  const float* alphas = nullptr;  // (H): in place of alpha. Null: alpha
  TopkKeys keys;                  // topk
};

/// What the forward pass writes and the backward pass reads: AttentionSaved of ops/attention.h.
/// `level` is always there, the others with the normalizers that have them.
struct SavedRows {
  float *level = nullptr, *threshold = nullptr;  // (B, H, T)
  int32_t* last = nullptr;                       // (B, H, T)
  int32_t* live = nullptr;                       // (B, H, live_groups(T), live_words(T))
};

/// The queries [first, first + queries) that a launch is about, 0: all; and b of every logit of
/// theirs, where kernels of the bias have formed it before: of query first + n and key j at (n, j)
/// of a (B, H, rows, stride). Null: it is not.
struct FormedBias {
  float* b = nullptr;  // the backward pass leaves dz in its place
  float* p = nullptr;  // and the weights here
  float* s = nullptr;  // the scores, of a bias that reads them; forward b takes their place
  int first = 0, queries = 0;
  int64_t rows = 0, stride = 0;

  BAMTRAIN_HD int64_t row(int64_t head, int i) const { return (head * rows + i - first) * stride; }
};

/// What the bias's own kernels work in, where it reads queries and keys (attention_content.h).
struct ContentScratch {
  float* logits = nullptr;
  int64_t count = 0;  // of `logits`: content_logits times content_arrays, or more
  float* sums = nullptr;
  int64_t count_of_sums = 0;  // content_sums, or more
};

/// What attention reads. A: float or bf16.
template <class A>
struct AttentionInputs : BiasInputs {
  int B = 0, T = 0, H = 0, K = 0, D = 0;  // K divides H; query head h reads key head h / (H / K)
  float content_divisor = 0;              // s = <q, k> / content_divisor
  Rows<const A> q;                        // (B, T, H, D)
  Rows<const A> k, v;                     // (B, T, K, D)
  const float* scale = nullptr;           // (B, H, T): t. Null: t = 1
  bool scale_bias = false;                // z = t (s + b) instead of t s + b
  const int32_t* first_key = nullptr;     // (B, T): row i sees keys first_key[i] .. i.
                                          // Non-decreasing, in [0, i]
  // (B, T), where `causal` is false: it sees keys to last_key[i], and key j sees i. Non-decreasing,
  // in [i, T)
  const int32_t* last_key = nullptr;
  NormalizerInputs normalizer;
  ContentScratch content;  // where reads_content(*this)
  // Of a forward pass `first` and `queries` may be the caller's, where the queries before them were
  // asked before: the last ones of T. Arrays by query are addressed as if those were there. The
  // rest is set by launchers alone.
  FormedBias formed;

  /// The numbers of a head.
  BAMTRAIN_HD const double* numbers_of(int b, int h) const {
    return numbers + (static_cast<int64_t>(b) * H + h) * (numbers_head > 0 ? numbers_head : T);
  }
  /// How many queries a launch is about. They begin at formed.first and end here.
  BAMTRAIN_HD int queries() const { return formed.queries > 0 ? formed.queries : T; }
  BAMTRAIN_HD int end_of_queries() const { return formed.first + queries(); }
  /// Distances below 0, and all of them.
  BAMTRAIN_HD int distances_behind() const { return causal ? 0 : T - 1; }
  BAMTRAIN_HD int distances() const { return T + distances_behind(); }
};

template <class A>
struct AttentionForward {
  AttentionInputs<A> in;
  Rows<A> out;      // (B, T, H, D), written
  SavedRows saved;  // written
};

template <class A>
struct AttentionBackward : BiasOutputs {
  AttentionInputs<A> in;
  Rows<const A> out, dout;  // (B, T, H, D)
  SavedRows saved;          // as the forward pass left it
  Rows<A> dq;               // (B, T, H, D), written
  Rows<A> dk, dv;           // (B, T, K, D), written
  float* dscale = nullptr;  // (B, H, T), written where there is a scale
  float* dalpha = nullptr;  // (B, H, T), written where there are alphas
  // Scratch.
  float* row_product = nullptr;  // attention_row_products floats
  // attention_partial_floats floats, where there is a table; attention_fire_floats, where fire is.
  float* partial = nullptr;
  float* carries = nullptr;  // attention_carries floats, where there are any
};

/// Whether there are kernels on tiles of D elements A: in fp32 as far as these fit into 99 KiB.
template <class A>
constexpr bool has_tiles(int D) {
  return has_head_dim(D) && (sizeof(A) == 2 || D <= 64);
}

/// Whether attention takes plain loops (attention_reference.h): where it is not causal, with fire
/// or a bias that reads queries and keys; in fp32, causal or not, with a bias that reads them, with
/// stick-breaking, and without tiles.
template <class A>
bool attention_is_plain(const AttentionInputs<A>& a) {
  if (!a.causal && (reads_content(a) || a.fire.psi != nullptr)) return true;
  return sizeof(A) == 4 && (reads_content(a) || !has_tiles<A>(a.D) ||
                            a.normalizer.kind == NormalizerKind::stick_breaking);
}

/// Enqueues the forward pass: one kernel; of a bias that reads queries and keys, or mixed heads,
/// some more for each part (attention_content.h). Softmax has kernels of its own in bf16 where it
/// is causal, unless `any`; they leave `live` as it is, and so do plain loops. Refuses in bf16
/// a D that is not one of kHeadDims, else one that plain loops do not take, sizes that are not
/// positive or past a grid's limits, and strides or addresses that 16-byte accesses do not take.
template <class A>
device::LaunchStatus attention_forward(const AttentionForward<A>& f, device::Stream stream,
                                       bool any = false);

/// Enqueues the backward pass: three kernels, two without a table or fire, and with stick-breaking
/// two for each attention_carried_heads key heads; more as above. Refuses what the forward pass
/// refuses.
template <class A>
device::LaunchStatus attention_backward(const AttentionBackward<A>& g, device::Stream stream,
                                        bool any = false);

/// Floats of AttentionBackward::row_product: three of each row.
constexpr int64_t attention_row_products(int B, int T, int H) { return 3 * int64_t{B} * H * T; }

/// Rows and keys of a tile.
constexpr int kTile = 64;
BAMTRAIN_HD constexpr int attention_tiles(int T) { return (T + kTile - 1) / kTile; }

/// Queries of a block of the kernels that own queries, and those blocks. `bytes`: of an element.
constexpr int attention_query_rows(int D, int bytes = 2) {
  return D * bytes <= 128 ? 2 * kTile : kTile;
}
constexpr int attention_query_tiles(int T, int D, int bytes = 2) {
  return (T + attention_query_rows(D, bytes) - 1) / attention_query_rows(D, bytes);
}

/// Key heads, of all sequences, that the backward pass of stick-breaking takes at a time: as many
/// as make about kCarriedTiles tiles of keys, so that what rows carry from one part of a tile to
/// the next takes O(T) memory up to T = kTile kCarriedTiles / (H / K).
constexpr int kCarriedTiles = 512, kCarriedKeys = kTile / 2;
constexpr int attention_carried_heads(int B, int T, int H, int K) {
  const int64_t tiles = int64_t{attention_tiles(T)} * (H / K);
  return static_cast<int>(std::min(std::max<int64_t>(1, kCarriedTiles / tiles), int64_t{B} * K));
}
/// Floats of AttentionBackward::carries: two per row, part of a tile and head in flight; or three
/// per key and key head, in plain loops.
constexpr int64_t attention_carries(int B, int T, int H, int K) {
  const int64_t parts = int64_t{attention_tiles(T)} * (kTile / kCarriedKeys);
  const int64_t heads = int64_t{attention_carried_heads(B, T, H, K)} * (H / K);
  return std::max(heads * parts * T * 2, int64_t{3} * K * T);
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

/// Floats of one partial table: `distances`, and those past them that whole tiles have.
constexpr int64_t attention_partial_table(int64_t distances) { return distances + 2 * kTile; }

/// Floats of AttentionBackward::partial, enough for any smaller B or T too.
constexpr int64_t attention_partial_floats(int B, int T, int H, int K, int64_t distances) {
  const int64_t slots = std::min(int64_t{B} * attention_tiles(T),
                                 std::max<int64_t>(B, kTableBlocks / K));  // >= B attention_parts
  return slots * H * attention_partial_table(distances);
}

/// Sums of one head and tile of queries of fire: of db and of db u for each segment.
constexpr int kFirePartial = 2 * kFireSegments;
/// Floats of AttentionBackward::partial with fire, enough for every head dimension.
constexpr int64_t attention_fire_floats(int B, int T, int H) {
  return int64_t{B} * H * attention_tiles(T) * kFirePartial;
}

}  // namespace bamtrain::kernels

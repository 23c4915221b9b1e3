#pragma once
// Attention of one query of each text, as generated text asks for it: the keys of a head are
// divided among blocks, so that a few heads keep all multiprocessors reading.

#include "attention.h"

namespace bamtrain::kernels {

/// Pieces into which the keys that a query sees are divided, of kDecodeKeys keys or more each.
constexpr int kDecodePieces = 128, kDecodeKeys = 128;
constexpr int attention_decode_pieces(int T) {
  return T >= kDecodePieces * kDecodeKeys ? kDecodePieces : (T + kDecodeKeys - 1) / kDecodeKeys;
}

/// Floats of `partial`, enough for any smaller B or T too: of each piece and head the sums of
/// weighted values, of weights, and the largest logit.
constexpr int64_t attention_decode_floats(int B, int T, int H, int D) {
  return int64_t{B} * H * attention_decode_pieces(T) * (D + 2);
}

/// Whether attention_decode takes this: one query of each text, by softmax.
inline bool decodes(const AttentionInputs<bf16>& a) {
  return a.formed.queries == 1 && traits_of(a.normalizer.kind).fused;
}

/// As attention_forward, for what decodes(f.in): two kernels, and those of a bias that reads
/// queries and keys before them. Sums are fp32 in an order that depends on f.in's sizes and on how
/// many keys the query sees, on nothing else. Refuses what attention_forward does.
device::LaunchStatus attention_decode(const AttentionForward<bf16>& f, float* partial,
                                      device::Stream stream);

}  // namespace bamtrain::kernels

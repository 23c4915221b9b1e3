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

/// Floats of what the pieces of a head have: the sums of weighted values, of weights, and the
/// largest logit.
constexpr int64_t attention_decode_sums(int B, int T, int H, int D) {
  return int64_t{B} * H * attention_decode_pieces(T) * (D + 2);
}
/// Floats of `scratch`, enough for any smaller B or T too. `searched`: with normalizers other than
/// softmax, whose logits stay until the search is done.
constexpr int64_t attention_decode_floats(int B, int T, int H, int D, bool searched) {
  return attention_decode_sums(B, T, H, D) + (searched ? int64_t{B} * H * T : 0);
}

/// Whether attention_decode takes this: one query of each text, by any normalizer whose weights
/// need no order of the keys.
inline bool decodes(const AttentionInputs<bf16>& a) {
  return a.formed.queries == 1 && a.normalizer.kind != NormalizerKind::stick_breaking;
}

/// As attention_forward, for what decodes(f.in): two kernels, or four of a normalizer that
/// searches, and those of a bias that reads queries and keys before them. Sums are fp32 in an order
/// that depends on f.in's sizes and on how many keys the query sees, on nothing else. Refuses what
/// attention_forward does.
device::LaunchStatus attention_decode(const AttentionForward<bf16>& f, float* scratch,
                                      device::Stream stream);

}  // namespace bamtrain::kernels

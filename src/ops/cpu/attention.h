#pragma once
// Attention for the CPU backend: blocked, online softmax, O(T) memory in both directions, dead
// tiles skipped. See Backend in ops/ops.h for the contract and ops/reference/attention.cpp for the
// algebra, one logit at a time.

#include <cstdint>

#include "core/arena.h"
#include "ops/cpu/bf16_gemm.h"
#include "ops/cpu/isa.h"
#include "ops/ops.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

namespace tiles {
class Pieces;
}

/// What WorkspaceShape says of biases that read queries and keys.
struct ContentShape {
  bool any = false;
  int64_t columns = 0;
  bool causal = true;
};

/// Sized by plan for the longest sequence.
struct AttentionScratch {
  Tensor packed;  // (slots, floats) f32: as many as tasks can run at once
  // (B, H, parts of T, table_length) f32, reversed partial tables, or of numbers of tokens the
  // keys' part of their gradient; only with backward
  Tensor dtable;
  Tensor dfire;  // (B, H, parts of T, 2 kFireSegments) f64, partial sums; only with backward
  // (B H, most of them) f32, partial sums of a bias that reads queries and keys; only with backward
  Tensor of_content;
  // Where heads are mixed, f32. mix_shared: what tasks of some sequences share: packed keys and
  // values, and their gradients by part of the queries; in decoding the strips of all heads.
  // mix_networks: (B parts of T, floats), gradients of the network; only with backward
  Tensor mix_shared, mix_networks;
  bool general = false;     // AttentionForm::general, of any layer
  bool statistics = false;  // WorkspaceShape::attention_statistics
  ContentShape content;
  const Bf16Gemm* bf16_gemm = nullptr;  // the processor's, or null
  void plan(Arena& arena, const WorkspaceShape& w);
  tiles::Pieces of_slot(int64_t slot) const;
};

/// With a past too.
void cpu_attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                           const AttentionScratch& s);
void cpu_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                            const AttentionSaved& saved, const Attention& a,
                            const AttentionScratch& s);
/// REQUIRES: softmax.
void cpu_attention_entropy(Tensor entropy, const Attention& a, const AttentionScratch& s);
void cpu_attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                              const Attention& a, const AttentionScratch& s);

/// Rows of queries to many keys of the past below which packing keys costs more than it saves.
constexpr int64_t kLeastPackedRows = 8;

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

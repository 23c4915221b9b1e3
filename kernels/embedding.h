#pragma once
// The embedding of tokens and learned positions, forward and backward. A: float or bf16.
//
// The adjoint adds each row of dout to the table row of its token. Many rows share a token, so rows
// are first sorted by token with a stable counting sort. Then blocks add up pieces of
// kEmbeddingPiece sorted rows in parallel. A run of equal tokens may span pieces: each later piece
// stores its part in its own slot, and the slots are added in order. This needs neither atomics nor
// a pass over the table, and a frequent token is shared among many blocks.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

template <class A>
struct EmbeddingForward {
  A* out = nullptr;                 // (N, C): scale table[token] + position_table[position]
  const int32_t* tokens = nullptr;  // (N), in [0, V)
  const A* table = nullptr;         // (V, C)
  float scale = 1;
  const int32_t* positions = nullptr;     // (N), in [0, T'); read if position_table is set
  const float* position_table = nullptr;  // (T', C), or null
  int64_t N = 0;
  int C = 0;
};

/// One kernel. Refuses a C that is not a multiple of 8, sizes that are not positive, and addresses
/// that are not aligned to 16 bytes.
template <class A>
device::LaunchStatus embedding_forward(const EmbeddingForward<A>& f, device::Stream stream);

constexpr int64_t kEmbeddingMaxN = int64_t{1} << 24;
constexpr int kEmbeddingMaxRows = 1 << 18;  // of a table

template <class A>
struct EmbeddingBackward {
  float* dtable = nullptr;  // (V, C), added to, times scale
  float scale = 1;
  float* dposition_table = nullptr;    // (T', C), added to, or null
  const A* dout = nullptr;             // (N, C)
  const int32_t* tokens = nullptr;     // (N), in [0, V)
  const int32_t* positions = nullptr;  // (N), in [0, T'); read if dposition_table is set
  int64_t N = 0;                       // at most kEmbeddingMaxN
  int C = 0, V = 0, T = 0;             // T: T'. V and T' at most kEmbeddingMaxRows
  void* scratch = nullptr;             // embedding_backward_scratch bytes
};

/// Eight kernels per table; five for one of at most 512 rows. Refuses what the forward pass
/// refuses, and an N, V or T' above its limit.
template <class A>
device::LaunchStatus embedding_backward(const EmbeddingBackward<A>& g, device::Stream stream);

// --- scratch of the backward pass ---------------------------------------------------------------

constexpr int kEmbeddingPiece = 64;       // sorted rows per block: a piece
constexpr int kEmbeddingSortTile = 2048;  // rows sorted per block
constexpr int kEmbeddingDigits = 512;     // values of a digit of the sort

constexpr int64_t embedding_pieces(int64_t N) {
  return (N + kEmbeddingPiece - 1) / kEmbeddingPiece;
}
constexpr int64_t embedding_sort_tiles(int64_t N) {
  return (N + kEmbeddingSortTile - 1) / kEmbeddingSortTile;
}

/// Bytes of EmbeddingBackward::scratch: a slot of C floats per piece, two lists of sorted tokens
/// and their rows, and the counts of each digit in each tile: a little over 1/32 of a bf16 dout.
/// Enough for any smaller N or C too.
constexpr int64_t embedding_backward_scratch(int64_t N, int C) {
  return 4 * (embedding_pieces(N) * C + 4 * N + kEmbeddingDigits * (embedding_sort_tiles(N) + 1));
}

}  // namespace bamtrain::kernels

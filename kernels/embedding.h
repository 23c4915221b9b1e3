#pragma once
// The embedding of tokens and learned positions, forward and backward. A: float or bf16.
//
// The adjoint adds each row of dout to the row of the table that its token names. Many rows name
// the same one, so the rows are first brought into the order of their tokens by a stable counting
// sort. Pieces of kEmbeddingPiece sorted rows are then added up side by side; what a run of equal
// tokens leaves in the pieces that it only passes through, or ends in, waits in a slot per piece
// and is added in the order of the pieces. Neither atomics nor a pass over the table, and a token
// that makes up much of the text is shared among many blocks.

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
  const int32_t* positions = nullptr;     // (N), in [0, T'); read where there is a position_table
  const float* position_table = nullptr;  // (T', C), or null
  int64_t N = 0;
  int C = 0;
};

/// One kernel. Refuses a C that is no multiple of 8, sizes that are not positive, and addresses
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
  const int32_t* positions = nullptr;  // (N), in [0, T'); read where there is a dposition_table
  int64_t N = 0;                       // at most kEmbeddingMaxN
  int C = 0, V = 0, T = 0;             // T: T'. V and T' at most kEmbeddingMaxRows
  void* scratch = nullptr;             // embedding_backward_scratch bytes
};

/// Eight kernels per table; five for one of at most 512 rows. Refuses what the forward pass
/// refuses, and an N, V or T' above its limit.
template <class A>
device::LaunchStatus embedding_backward(const EmbeddingBackward<A>& g, device::Stream stream);

// --- scratch of the backward pass ---------------------------------------------------------------

constexpr int kEmbeddingPiece = 64;       // sorted rows that a block adds up
constexpr int kEmbeddingSortTile = 2048;  // rows that a block sorts
constexpr int kEmbeddingDigits = 512;     // values of a digit of the sort

constexpr int64_t embedding_pieces(int64_t N) {
  return (N + kEmbeddingPiece - 1) / kEmbeddingPiece;
}
constexpr int64_t embedding_sort_tiles(int64_t N) {
  return (N + kEmbeddingSortTile - 1) / kEmbeddingSortTile;
}

/// Bytes of EmbeddingBackward::scratch: a slot of C floats per piece, two lists of sorted tokens
/// and their rows, and the counts of each digit in each tile: 1/32 of a bf16 dout and a little.
/// Enough for any smaller N or C too.
constexpr int64_t embedding_backward_scratch(int64_t N, int C) {
  return 4 * (embedding_pieces(N) * C + 4 * N + kEmbeddingDigits * (embedding_sort_tiles(N) + 1));
}

}  // namespace bamtrain::kernels

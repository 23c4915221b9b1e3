#pragma once
// How element-wise kernels and column sums divide an (N, C) matrix, C a multiple of 8: into tiles
// of rows by 32 vectors of columns, one tile per block. A warp reads one row of its tile at a time,
// one vector per lane; the warps alternate over the rows.

#include "arguments.h"
#include "vectors.cuh"

namespace bamtrain::kernels {

constexpr int kMatrixWarps = 8;
constexpr int kMatrixThreads = 32 * kMatrixWarps;

/// Tiles across a row of C elements.
template <class A>
constexpr int64_t column_tiles(int64_t C) {
  return blocks_of(C, 32 * kVector<A>);
}

/// The part of a matrix that a thread works on: vectors at (row + k kMatrixWarps, column), k >= 0,
/// in tile `index`. In the grid, tiles of the same rows are consecutive.
template <class A>
struct MatrixTile {
  int64_t index;  // of the tile's rows among all rows
  int64_t column;
  int warp, lane;

  /// `tiles`: column_tiles of the matrix.
  BAMTRAIN_DEVICE explicit MatrixTile(uint32_t tiles) {
    const uint32_t block = device::block_index().x;
    const int thread = static_cast<int>(device::thread_index().x);
    warp = thread / 32;
    lane = thread % 32;
    index = block / tiles;
    column = static_cast<int64_t>(block % tiles * 32 + static_cast<uint32_t>(lane)) * kVector<A>;
  }
};

}  // namespace bamtrain::kernels

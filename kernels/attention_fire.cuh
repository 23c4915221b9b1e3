#pragma once
// The bias of family fire: b = slope u + offset, u = psi[d] inverse of the
// row, by segments of distances d (see FireTables in ops/mechanisms/fire.h).
//
// Segments follow each other along a row: a tile's part of it begins in the segment of its farthest
// key and walks on to that of its nearest. Most tiles lie in one segment, where a logit costs what
// it does with a table: psi from a slice in shared memory and one multiply-add, and a compare that
// is always true. Each further segment that a tile's part of a row meets costs the same again, and
// three loads from global memory. The gradients add three multiply-adds and two compares a logit.

#include "attention.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

constexpr int kNoEnd = INT32_MIN;

/// Rows past T have the position of the last.
BAMTRAIN_DEVICE int position_of(const auto& a, int b, int i) {
  return a.fire.positions[static_cast<int64_t>(b) * a.T + (i < a.T ? i : a.T - 1)];
}

/// A query's segment of distances `low` and more, and its line: b = factor psi[d] + offset.
struct alignas(16) FirePlace {
  int segment, low;  // kNoEnd in the first segment
  float factor, offset;

  FirePlace() = default;
  /// Query i of (b, h) at distance d. All lanes of a warp call; four neighbours, parts 0 to 3, for
  /// one query.
  BAMTRAIN_DEVICE FirePlace(const auto& a, int b, int h, int i, int d, int part) {
    const int position = position_of(a, b, i);
    const auto* const of_part =
        reinterpret_cast<const Words*>(a.fire.ends + position * int64_t{kFireHidden}) + 2 * part;
    segment = 0;
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2; ++n) {
      const Words ends = of_part[n];
      BAMTRAIN_UNROLL
      for (int k = 0; k < 4; ++k) segment += static_cast<int>(ends.w[k]) <= d;
    }
    segment += device::shuffle_xor(device::kWholeWarp, segment, 1);
    segment += device::shuffle_xor(device::kWholeWarp, segment, 2);
    enter(a, h, position);
  }

  /// To the segment before, of smaller distances.
  BAMTRAIN_DEVICE void descend(const auto& a, int b, int h, int i) {
    --segment;
    enter(a, h, position_of(a, b, i));
  }

 private:
  BAMTRAIN_DEVICE void enter(const auto& a, int h, int position) {
    const int line = h * kFireSegments + segment;
    low = segment == 0 ? kNoEnd : a.fire.ends[position * int64_t{kFireHidden} + segment - 1];
    factor = a.fire.slope[line] * a.fire.inverse[position];
    offset = a.fire.offset[line];
  }
};

/// f(place, high) for each segment of query i of (b, h) from `place` on, down to that of distance
/// `nearest`, where `place` stays: distances place.low to high - 1.
template <class F>
BAMTRAIN_DEVICE void walk_segments(FirePlace& place, const auto& a, int b, int h, int i,
                                   int nearest, const F& f) {
  int high = INT32_MAX;
  for (;;) {
    f(place, high);
    if (place.low <= nearest) return;
    high = place.low;
    place.descend(a, b, h, i);
  }
}

/// The biases of the two keys of each eight columns that row r has in the tile at j0.
/// `psi`: the tile's slice.
template <class Block, int N>
BAMTRAIN_DEVICE void fire_biases(float (&bias)[N][2], FirePlace& place, const auto& a,
                                 const Block& own, int r, int j0, const float* psi, const Lane& l) {
  const int i = own.rows[r];
  walk_segments(place, a, own.b, own.h, i, i - (j0 + 8 * N - 1),
                [&](const FirePlace& at, int high) {
                  BAMTRAIN_UNROLL
                  for (int n = 0; n < N; ++n) {
                    BAMTRAIN_UNROLL
                    for (int c = 0; c < 2; ++c) {
                      const int key = l.column(n, c);
                      const float b = at.factor * psi[own.slice_index(r, key)] + at.offset;
                      if (i - j0 - key < high) bias[n][c] = b;
                    }
                  }
                });
}

/// Where a block of kQueries queries adds up its sums, in shared memory. Four neighbouring lanes
/// share rows: the first of them alone adds to what is theirs.
template <int kQueries>
struct FireTotals {
  static constexpr int kSlots = kThreads / 4;
  static constexpr int kSegments = kFirePartial * kSlots, kFloats = kSegments + 3 * kQueries;

  float* segments;  // (kFirePartial, kSlots): of db and of db u, for each segment
  float *u, *psi;   // (kQueries) each: the row's sums, which lack factors, see add()
  float* inverse;   // (kQueries)

  BAMTRAIN_DEVICE explicit FireTotals(float* shared)
      : segments(shared), u(shared + kSegments), psi(u + kQueries), inverse(psi + kQueries) {}

  BAMTRAIN_DEVICE void clear(int thread) const {
    for (int n = thread; n < kSegments; n += kThreads) segments[n] = 0;
  }
  template <class Block>
  BAMTRAIN_DEVICE void clear_row(const auto& a, const Block& own, int r, const Lane& l) const {
    if (l.pair != 0) return;
    const int row = own.rows[r] - own.i0;
    u[row] = psi[row] = 0;
    inverse[row] = a.fire.inverse[position_of(a, own.b, own.rows[r])];
  }

  /// Adds what dz of row r, whose biases have the factor u, and the keys of the tile at j0 gives:
  /// walk_segments, all rows of a warp together until the last is done. The sums of the row lack
  /// its u, that of psi its division by inverse too.
  template <class Block, int N>
  BAMTRAIN_DEVICE void add(FirePlace& place, float u_of_row, const float (&dz)[N][4], const auto& a,
                           const Block& own, int r, int j0, const float* slice,
                           const float* derivatives, const Lane& l) const {
    const int i = own.rows[r], row = i - own.i0, nearest = i - (j0 + 8 * N - 1);
    int high = INT32_MAX;
    for (;;) {
      float one = 0, with_psi = 0, with_psi_dc = 0;
      BAMTRAIN_UNROLL
      for (int n = 0; n < N; ++n) {
        BAMTRAIN_UNROLL
        for (int c = 0; c < 2; ++c) {
          const int key = l.column(n, c), d = i - j0 - key, index = own.slice_index(r, key);
          const float x = place.low <= d && d < high ? dz[n][r % 2 * 2 + c] : 0.0f;
          one += x;
          with_psi += x * slice[index];
          with_psi_dc += x * derivatives[index];
        }
      }
      BAMTRAIN_UNROLL
      for (int distance = 1; distance < 4; distance *= 2) {
        one += device::shuffle_xor(device::kWholeWarp, one, distance);
        with_psi += device::shuffle_xor(device::kWholeWarp, with_psi, distance);
        with_psi_dc += device::shuffle_xor(device::kWholeWarp, with_psi_dc, distance);
      }
      if (l.pair == 0) {
        float* const slot = segments + 2 * place.segment * kSlots + 8 * l.warp + l.row;
        slot[0] += u_of_row * one;
        slot[kSlots] += u_of_row * inverse[row] * with_psi;
        u[row] += place.factor * with_psi;
        psi[row] += place.factor * with_psi_dc;
      }
      const bool more = place.low > nearest;
      if (device::ballot(device::kWholeWarp, more) == 0) return;
      high = more ? place.low : kNoEnd;  // rows that are done add nothing
      if (more) place.descend(a, own.b, own.h, i);
    }
  }

  /// Of segment n / 2: of db, or of db u. After a barrier.
  BAMTRAIN_DEVICE float of_segment(int n) const {
    float sum = 0;
    // Neighbouring threads begin in different banks.
    for (int slot = 0; slot < kSlots; ++slot) {
      sum += segments[n * kSlots + (n + slot) % kSlots];
    }
    return sum;
  }
};

}  // namespace bamtrain::kernels

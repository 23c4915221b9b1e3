#pragma once
// The bias of family fire for the CPU attention, a row of a tile at a time. See FireTables in
// ops/attention.h. Along a row the segments follow each other; far from the diagonal a tile's row
// lies in one of them.

#include <algorithm>
#include <cstdint>

#include "ops/cpu/simd.h"
#include "ops/ops.h"
#include "priors/fire.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// What one head and sequence reads, and where a row's biases go.
template <int64_t kKeys>
struct FireRows {
  const float *psi = nullptr, *psi_dc = nullptr;  // reversed, see reverse_table
  const float* inverse = nullptr;                 // by position
  const int32_t *ends = nullptr, *positions = nullptr;
  const float *slope = nullptr, *offset = nullptr;  // of the head
  float* row = nullptr;                             // (kKeys)

  /// f(segment, begin, end) for the lanes [begin, end) of keys from j0 on that lie in one segment
  /// of query i, in the order of lanes.
  template <class F>
  void for_segments(int64_t i, int64_t j0, F&& f) const {
    const int32_t* of_row = ends + int64_t{positions[i]} * kFireHidden;
    const auto d = static_cast<int32_t>(i - j0);
    int64_t segment = std::upper_bound(of_row, of_row + kFireHidden, d) - of_row;
    for (int64_t begin = 0; begin < kKeys; --segment) {
      const int64_t end =
          segment == 0 ? kKeys : std::min<int64_t>(kKeys, d - of_row[segment - 1] + 1);
      if (end > begin) f(segment, begin, end);
      begin = std::max(begin, end);
    }
  }

  /// Calls f(v, inside) for the vectors of lanes that hold any of [begin, end): which lanes do.
  template <class F>
  static void for_vectors(int64_t begin, int64_t end, F&& f) {
    for (int64_t v = begin / simd::kWidth; v * simd::kWidth < end; ++v) {
      const simd::IVec lane = simd::lanes() + static_cast<int32_t>(v * simd::kWidth);
      f(v * simd::kWidth,
        (lane >= static_cast<int32_t>(begin)) & (lane < static_cast<int32_t>(end)));
    }
  }

  /// The biases of query i and the keys from j0 on; `at` is where their entries of psi begin.
  const float* biases(int64_t i, int64_t j0, int64_t at) const {
    const float of_row = inverse[positions[i]];
    for_segments(i, j0, [&](int64_t segment, int64_t begin, int64_t end) {
      const simd::Vec factor = simd::splat(slope[segment] * of_row);
      const simd::Vec constant = simd::splat(offset[segment]);
      for_vectors(begin, end, [&](int64_t n, simd::IVec inside) {
        const simd::Vec b = factor * simd::load(psi + at + n) + constant;
        simd::store(row + n, inside ? b : simd::load(row + n));
      });
    });
    return row;
  }

  /// Adds what db of query i and the keys from j0 on gives: to sums (kFireSegments, 2) of the head,
  /// and to the query's of_u and of_psi.
  void add(const float* db, int64_t i, int64_t j0, int64_t at, double* sums, float* of_u,
           float* of_psi) const {
    const float of_row = inverse[positions[i]];
    for_segments(i, j0, [&](int64_t segment, int64_t begin, int64_t end) {
      simd::Vec one{}, with_psi{}, with_psi_dc{};
      for_vectors(begin, end, [&](int64_t n, simd::IVec inside) {
        const simd::Vec d = inside ? simd::load(db + n) : simd::Vec{};
        one += d;
        with_psi += d * simd::load(psi + at + n);
        with_psi_dc += d * simd::load(psi_dc + at + n);
      });
      const float u = simd::sum(with_psi) * of_row;
      sums[2 * segment] += static_cast<double>(simd::sum(one));
      sums[2 * segment + 1] += static_cast<double>(u);
      *of_u += slope[segment] * u;
      *of_psi += slope[segment] * simd::sum(with_psi_dc);
    });
  }
};

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

#pragma once
// The softmax of a tile of queries while their keys come by, a tile at a time.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// The running softmax of one tile of queries.
struct Running {
  float *out, *maximum, *sum;  // (kQ, Dp), (kQ), (kQ)

  static int64_t floats(int64_t Dp) { return kQ * Dp + 2 * padded(kQ); }
  Running(Pieces& pieces, int64_t Dp)
      : out(pieces.take(kQ * Dp)), maximum(pieces.take(kQ)), sum(pieces.take(kQ)) {}

  void begin(int64_t Dp) const {
    std::fill_n(out, kQ * Dp, 0.0f);
    std::fill_n(maximum, kQ, kMinusInfinity);
    std::fill_n(sum, kQ, 0.0f);
  }
  /// Divides what the rows have gathered by their sums; level (rows): the logarithms of those.
  void end(int64_t rows, int64_t Dp, float* level) const {
    for (int64_t r = 0; r < rows; ++r) {
      const float inverse = 1 / sum[r];
      for (int64_t c = 0; c < Dp; ++c) out[r * Dp + c] *= inverse;
      level[r] = maximum[r] + std::log(sum[r]);
    }
  }
};

/// Turns the content scores of one tile into probabilities relative to the running maximum and
/// rescales what the rows have gathered so far.
template <ScaleMode kScale, class Stage>
inline void online_softmax(float* tile, const Running& run, const Stage& biases, const Factors& t,
                           const Sight& sight, int64_t i0, int64_t i1, int64_t j0, int64_t Dp,
                           bool all_visible) {
  using OfKeys = typename Stage::template OfKeys<kScale>;
  for (int64_t i = i0; i < i1; ++i) {
    const int64_t r = i - i0;
    float* row = tile + r * kStride + kMargin;
    const float* of_keys = biases.of_keys(i, j0);
    const auto of_row = biases.of_row(r);
    const Vec scale = simd::splat(kScale == ScaleMode::none ? 1.0f : t.of_content(i));
    Vec z[kV];
    Vec highest = simd::splat(kMinusInfinity);
    for (int64_t v = 0; v < kV; ++v) {
      const int64_t j = v * simd::kWidth;
      const OfKeys b(of_keys + j, of_row);
      z[v] = logits<kScale>(simd::load(row + j), b.bias(), scale);
      if (!all_visible) {
        z[v] = visible(j0 + j, sight.first(i), sight.last(i)) ? z[v] : simd::splat(kMinusInfinity);
      }
      highest = simd::max(highest, z[v]);
    }
    const float m = std::max(run.maximum[r], simd::maximum(highest));
    Vec total{};
    // The row sees no key of this tile, nor of any before it, or such as are NaN: maxima pass over
    // NaN, so that beside a number it reaches the row by its probability, and alone by its logit.
    if (m == kMinusInfinity) [[unlikely]] {
      for (int64_t v = 0; v < kV; ++v) {
        const Vec p = z[v] == kMinusInfinity ? Vec{} : z[v];
        simd::store(row + v * simd::kWidth, p);
        total += p;
      }
      run.sum[r] += simd::sum(total);
      continue;
    }
    for (int64_t v = 0; v < kV; ++v) {
      const OfKeys b(of_keys + v * simd::kWidth, of_row);
      Vec p = b.weighted(simd::exp(z[v] - m));
      if (!all_visible) p = z[v] == kMinusInfinity ? Vec{} : p;
      simd::store(row + v * simd::kWidth, p);
      total += p;
    }
    const float keep = run.maximum[r] == m ? 1.0f : std::exp(run.maximum[r] - m);
    run.maximum[r] = m;
    run.sum[r] = run.sum[r] * keep + simd::sum(total);
    if (keep != 1.0f) {
      float* o = run.out + r * Dp;
      for (int64_t c = 0; c < Dp; c += simd::kWidth) simd::store(o + c, simd::load(o + c) * keep);
    }
  }
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

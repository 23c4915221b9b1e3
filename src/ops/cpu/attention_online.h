#pragma once
// The softmax of a tile of queries while their keys come by, a tile at a time.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu/attention_operands.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// The running softmax of one tile of queries.
struct Running {
  // Sums are of weights exp(z - base). A row's base is no less than its largest logit minus kSlack:
  // it follows the maximum only when that has grown by more, so that most tiles need no maximum of
  // a row, and no sum across a vector before the end.
  float* out;   // (kQ, Dp), weighted values
  float* base;  // (kQ)
  float* sums;  // (kQ, kWidth), of the weights, by lane
  static constexpr float kSlack = 8;

  static int64_t floats(int64_t Dp) { return kQ * (Dp + 1 + simd::kWidth); }
  Running(Pieces& pieces, int64_t Dp)
      : out(pieces.take(kQ * Dp)), base(pieces.take(kQ)), sums(pieces.take(kQ * simd::kWidth)) {}

  void begin(int64_t Dp) const {
    std::fill_n(out, kQ * Dp, 0.0f);
    std::fill_n(base, kQ, kMinusInfinity);
    std::fill_n(sums, kQ * simd::kWidth, 0.0f);
  }
  /// Moves row r to a larger base.
  void raise(int64_t r, float to, int64_t Dp) const {
    const float keep = std::exp(base[r] - to);
    base[r] = to;
    float* const o = out + r * Dp;
    float* const sum = sums + r * simd::kWidth;
    simd::store(sum, simd::load(sum) * keep);
    for (int64_t c = 0; c < Dp; c += simd::kWidth) simd::store(o + c, simd::load(o + c) * keep);
  }
  /// Divides what the rows have gathered by their sums; level (rows): the logarithms of those.
  void end(int64_t rows, int64_t Dp, float* level) const {
    for (int64_t r = 0; r < rows; ++r) {
      const float sum = simd::sum(simd::load(sums + r * simd::kWidth)), inverse = 1 / sum;
      for (int64_t c = 0; c < Dp; ++c) out[r * Dp + c] *= inverse;
      level[r] = base[r] + std::log(sum);
    }
  }
};

/// Turns what Operands::scores() gave of rows [first, end) and the keys of the tile at j0 into
/// weights relative to the rows' bases, which it raises where it has to. `run` is of rows from i0
/// on.
template <ScaleMode kScale, class Stage>
inline void online_softmax(const Operands& operands, const Running& run, const Stage& biases,
                           const Factors& t, const Sight& sight, int64_t i0, int64_t first,
                           int64_t end, int64_t j0, int64_t Dp) {
  using OfKeys = typename Stage::template OfKeys<kScale>;
  const bool all_visible = sight.whole(first, end, j0);
  const float score_factor = operands.score_factor();
  const LogitStrip strip = operands.strip();
  for (int64_t i = first; i < end; ++i) {
    const int64_t r = i - i0;
    const float* const row = strip.logits(i - first);
    float* const sum = run.sums + r * simd::kWidth;
    const float* const of_keys = biases.of_keys(i, j0);
    const auto of_row = biases.of_row(r);
    const Vec scale = simd::splat(kScale == ScaleMode::none ? 1.0f : t.of_content(i));
    Vec z[kV];
    // Once, or twice where the base has to follow: so the logits need not outlive a call.
    for (;;) {
      Vec highest = simd::splat(kMinusInfinity);
      for (int64_t v = 0; v < kV; ++v) {
        const int64_t j = v * simd::kWidth;
        const OfKeys b(of_keys + j, of_row);
        z[v] = logits<kScale>(simd::load(row + j) * score_factor, b.bias(), scale);
        if (!all_visible) {
          const auto seen = visible(j0 + j, sight.first(i), sight.last(i));
          z[v] = seen ? z[v] : simd::splat(kMinusInfinity);
        }
        highest = simd::max(highest, z[v]);
      }
      if (!simd::any_above(highest, simd::splat(run.base[r] + Running::kSlack))) break;
      run.raise(r, simd::maximum(highest), Dp);
    }
    const float base = run.base[r];
    Vec total = simd::load(sum);
    const auto weight = [&](int64_t v) {
      const OfKeys b(of_keys + v * simd::kWidth, of_row);
      return b.weighted(simd::exp_up_to_88(z[v] - base));
    };
    if (all_visible && base != kMinusInfinity) [[likely]] {
      for (int64_t v = 0; v < kV; ++v) z[v] = weight(v);
    } else {
      // With no base the row sees no key of this tile, nor of any before it, or such as are NaN:
      // maxima pass over NaN, so that beside a number it reaches the row by its weight, and alone
      // by its logit.
      for (int64_t v = 0; v < kV; ++v) {
        const Vec p = base == kMinusInfinity ? z[v] : weight(v);
        z[v] = z[v] == kMinusInfinity ? Vec{} : p;
      }
    }
    for (int64_t v = 0; v < kV; ++v) total += z[v];
    strip.put(i - first, z);
    simd::store(sum, total);
  }
}

/// Query tile n of `operands`, rows [i0, i1) of a text, and the keys [j_first, j_end), of which the
/// first is key `at` of `operands`.
template <ScaleMode kScale, class Stage>
inline void attend(const Operands& operands, int64_t n, const Running& run, const Stage& biases,
                   const Factors& t, const Sight& sight, int64_t i0, int64_t i1, int64_t j_first,
                   int64_t j_end, int64_t at, int64_t Dp) {
  biases.set_tile(i0, i1, j_first, j_end);
  const int64_t most_rows = operands.rows_at_once();
  for (int64_t j = 0; j < j_end - j_first; j += kK) {
    const int64_t live = std::min(kK, j_end - j_first - j);
    for (int64_t first = i0; first < i1; first += most_rows) {
      const int64_t r = first - i0, rows = std::min(most_rows, i1 - first);
      operands.scores(n, r, rows, at + j);
      online_softmax<kScale>(operands, run, biases, t, sight, i0, first, first + rows, j_first + j,
                             Dp);
      operands.add_values(run.out + r * Dp, rows, at + j, live);
    }
  }
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

#include "model/random_positions.h"

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"

namespace bamtrain {

void draw_positions(const Rng& rng, int64_t sequence, int64_t range, int64_t T,
                    int32_t* positions) {
  require(T <= range, "as many positions as tokens");
  // Takes p with probability (positions still needed) / (positions left) (Knuth, TAOCP 3.4.2,
  // algorithm S).
  int64_t taken = 0;
  for (int64_t p = 0; taken < T; ++p) {
    const auto draw = static_cast<uint64_t>(sequence * range + p);
    if (rng.below(draw, static_cast<uint64_t>(range - p)) < static_cast<uint64_t>(T - taken)) {
      positions[taken++] = static_cast<int32_t>(p);
    }
  }
}

namespace {

/// Draws 0 and a subset of [1, range) with n - 1 elements.
void draw_distances(const Rng& rng, int64_t number, int64_t range, int64_t n, int32_t* distances) {
  distances[0] = 0;
  if (n == 1) return;
  draw_positions(rng, number, range - 1, n - 1, distances + 1);
  for (int64_t i = 1; i < n; ++i) ++distances[i];
}

}  // namespace

void draw_batch(const Rng& rng, const Randomization& r, int64_t draws, const BatchDraw& batch,
                int64_t T, int32_t* positions) {
  const int64_t B = std::ssize(batch.sequences), n = batch.longest;
  if (!r.of_step) {
    parallel_for(B, [&](int64_t b) {
      draw_positions(rng, batch.sequences[static_cast<size_t>(b)], r.range, T, positions + b * T);
    });
    return;
  }
  parallel_for(draws, [&](int64_t d) {
    int32_t* const row = positions + d * B * T;
    const int64_t number = batch.step * draws + d;
    if (r.what == Randomized::distances) {
      draw_distances(rng, number, r.range, n, row);
    } else {
      draw_positions(rng, number, r.range, n, row);
    }
    std::fill(row + n, row + T, row[n - 1]);
    for (int64_t b = 1; b < B; ++b) std::copy_n(row, T, row + b * T);
  });
}

}  // namespace bamtrain

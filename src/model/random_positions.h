#pragma once
// Randomized positions (Ruoss et al. 2023, "Randomized positional encodings boost length
// generalization of transformers").

#include <cstdint>
#include <span>

#include "core/rng.h"
#include "priors/randomized.h"

namespace bamtrain {

/// Writes T positions in ascending order: a subset of [0, range) with T elements. All subsets are
/// equally likely. A pure function of (rng, sequence). REQUIRES: T <= range.
void draw_positions(const Rng& rng, int64_t sequence, int64_t range, int64_t T, int32_t* positions);

/// A batch whose rows have T columns.
struct BatchDraw {
  std::span<const int64_t> sequences;  // numbers of its rows
  int64_t step = 0;                    // the step they belong to
  int64_t longest = 0;                 // inputs of the longest row; the others are padded
};

/// Writes the random positions or distances of `r`, (draws, B, T) i32. If they are drawn by step,
/// they are those of the longest row, and its padding repeats the last one. All rows have the same;
/// shorter rows use the first ones. A pure function of (rng, sequence) of each row, or of (rng,
/// step, longest). REQUIRES: r; 1 <= longest <= T; T <= range if they are drawn by sequence.
void draw_batch(const Rng& rng, const Randomization& r, int64_t draws, const BatchDraw& batch,
                int64_t T, int32_t* positions);

}  // namespace bamtrain

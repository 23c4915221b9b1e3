#pragma once
// Randomized positions (Ruoss et al. 2023, "Randomized positional encodings boost length
// generalization of transformers").

#include <cstdint>
#include <span>

#include "core/rng.h"
#include "priors/randomized.h"

namespace bamtrain {

/// Writes T positions in ascending order: one of the subsets of [0, range) with T elements, all
/// equally likely, a pure function of (rng, sequence). REQUIRES: T <= range.
void draw_positions(const Rng& rng, int64_t sequence, int64_t range, int64_t T, int32_t* positions);

/// Of a batch whose rows have T columns.
struct BatchDraw {
  std::span<const int64_t> sequences;  // numbers of its rows
  int64_t step = 0;                    // to which they belong
  int64_t longest = 0;                 // inputs of the longest row, the others being padding
};

/// Writes (draws, B, T) i32, what Model::randomization() draws of. Those of a step belong to the
/// longest row, whose padding repeats the last of them, and are the same in all rows: shorter ones
/// have the first of them. A pure function of (rng, sequence) of each row, or of (rng, step,
/// longest). REQUIRES: r; 1 <= longest <= T; T <= range where they are of sequences.
void draw_batch(const Rng& rng, const Randomization& r, int64_t draws, const BatchDraw& batch,
                int64_t T, int32_t* positions);

}  // namespace bamtrain

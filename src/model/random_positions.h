#pragma once
// Randomized positions (Ruoss et al. 2023, "Randomized positional encodings boost length
// generalization of transformers").

#include <cstdint>

#include "core/rng.h"

namespace bamtrain {

/// Writes T positions in ascending order: one of the subsets of [0, range) with T elements, all
/// equally likely, a pure function of (rng, sequence). REQUIRES: T <= range.
void draw_positions(const Rng& rng, int64_t sequence, int64_t range, int64_t T, int32_t* positions);

}  // namespace bamtrain

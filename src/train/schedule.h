#pragma once
// Learning rate against step.

#include <cstdint>

#include "train/train_config.h"

namespace bamtrain {

/// Factor on the peak learning rate at `step` (from 0) of `steps`: (step + 1) / warmup during
/// warm-up, then from 1 towards min_ratio over the rest:
///   cosine, linear  over all steps after the warm-up: from 1, min_ratio after the last
///   constant        1
///   wsd             1 until the last decay_steps, then by decay_shape: min_ratio at the last step
///                   (after it, and from 1, where not reaches_minimum)
double schedule_factor(const ScheduleConfig& s, int64_t step, int64_t steps);

/// How many of the first steps have a factor that no other `steps` and decay_steps would change:
/// constant, all; wsd, those before the decay; cosine and linear, those of the warm-up and the one
/// behind it.
int64_t steps_independent_of_length(const ScheduleConfig& s, int64_t steps);

}  // namespace bamtrain

#pragma once
// Learning rate by step.

#include <cstdint>

#include "train/train_config.h"

namespace bamtrain {

/// Factor of the peak learning rate at `step` (from 0) of `steps`: (step + 1) / warmup during
/// warm-up, then from 1 towards min_ratio:
///   cosine, linear  over all steps after the warm-up; min_ratio would follow the last step
///   constant        1
///   wsd             1 until the last decay_steps, then by decay_shape; min_ratio at the last step
///                   (without reaches_minimum: starts at 1, min_ratio would follow the last step)
double schedule_factor(const ScheduleConfig& s, int64_t step, int64_t steps);

/// Number of initial steps whose factor does not depend on `steps` and decay_steps. constant: all.
/// wsd: those before the decay. cosine, linear: the warm-up and one more.
int64_t steps_independent_of_length(const ScheduleConfig& s, int64_t steps);

}  // namespace bamtrain

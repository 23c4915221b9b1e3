#pragma once
// Learning rate against step.

#include <cstdint>

#include "train/train_config.h"

namespace bamtrain {

/// Factor on the peak learning rate at `step` (from 0) of `steps`: (step + 1) / warmup during
/// warm-up, then from 1 towards min_ratio over the rest:
///   cosine, linear  over all steps after the warm-up
///   constant        1
///   wsd             1 until the last decay_steps, then linearly
double schedule_factor(const ScheduleConfig& s, int64_t step, int64_t steps);

}  // namespace bamtrain

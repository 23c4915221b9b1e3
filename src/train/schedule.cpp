#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace bamtrain {

namespace {

/// The first step at which the factor leaves 1 for good, but for that step itself.
int64_t decay_begin(const ScheduleConfig& s, int64_t steps) {
  return s.name == ScheduleKind::wsd ? std::max(s.warmup_steps, steps - s.decay_steps)
                                     : s.warmup_steps;
}

}  // namespace

double schedule_factor(const ScheduleConfig& s, int64_t step, int64_t steps) {
  if (step < s.warmup_steps) {
    return static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
  }
  const auto progress = [&] {
    const int64_t from = decay_begin(s, steps);
    const double length = static_cast<double>(std::max<int64_t>(1, steps - from));
    return std::clamp(static_cast<double>(step - from) / length, 0.0, 1.0);
  };
  const double range = 1 - s.min_ratio;
  switch (s.name) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
    case ScheduleKind::wsd:
      return 1 - range * progress();
    case ScheduleKind::cosine:
      break;
  }
  return s.min_ratio + range * 0.5 * (1 + std::cos(std::numbers::pi * progress()));
}

int64_t steps_independent_of_length(const ScheduleConfig& s, int64_t steps) {
  return s.name == ScheduleKind::constant ? kMaxSteps : decay_begin(s, steps) + 1;
}

}  // namespace bamtrain

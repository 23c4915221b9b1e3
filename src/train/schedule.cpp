#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace bamtrain {

double schedule_factor(const ScheduleConfig& s, int64_t step, int64_t steps) {
  if (step < s.warmup_steps) {
    return static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
  }
  const auto progress = [&](int64_t from) {
    const double length = static_cast<double>(std::max<int64_t>(1, steps - from));
    return std::clamp(static_cast<double>(step - from) / length, 0.0, 1.0);
  };
  const double range = 1 - s.min_ratio;
  switch (s.name) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
      return 1 - range * progress(s.warmup_steps);
    case ScheduleKind::wsd:
      return 1 - range * progress(std::max(s.warmup_steps, steps - s.decay_steps));
    case ScheduleKind::cosine:
      break;
  }
  return s.min_ratio + range * 0.5 * (1 + std::cos(std::numbers::pi * progress(s.warmup_steps)));
}

}  // namespace bamtrain

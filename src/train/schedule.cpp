#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace bamtrain {

namespace {

/// The step at which the decay begins.
int64_t decay_begin(const ScheduleConfig& s, int64_t steps) {
  return s.name == ScheduleKind::wsd ? std::max(s.warmup_steps, steps - s.decay_steps)
                                     : s.warmup_steps;
}

/// Whether the factor at decay_begin is already below 1, so that the last step's is min_ratio.
bool decays_at_once(const ScheduleConfig& s) {
  return s.name == ScheduleKind::wsd && s.reaches_minimum;
}

}  // namespace

double schedule_factor(const ScheduleConfig& s, int64_t step, int64_t steps) {
  if (step < s.warmup_steps) {
    return static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
  }
  if (s.name == ScheduleKind::constant) return 1;
  const bool wsd = s.name == ScheduleKind::wsd;
  const int64_t from = decay_begin(s, steps), done = step - from + (decays_at_once(s) ? 1 : 0);
  const double length = static_cast<double>(std::max<int64_t>(1, steps - from));
  const double progress = std::clamp(static_cast<double>(done) / length, 0.0, 1.0);
  const double range = 1 - s.min_ratio;
  const bool cosine = wsd ? s.decay_shape == DecayShape::cosine : s.name == ScheduleKind::cosine;
  if (!cosine) return 1 - range * progress;
  return s.min_ratio + range * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

int64_t steps_independent_of_length(const ScheduleConfig& s, int64_t steps) {
  if (s.name == ScheduleKind::constant) return kMaxSteps;
  return decay_begin(s, steps) + (decays_at_once(s) ? 0 : 1);
}

}  // namespace bamtrain

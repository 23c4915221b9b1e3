#include "train/schedule.h"

#include <cmath>
#include <utility>

#include "catch.h"

using namespace bamtrain;

TEST_CASE("warm-up rises linearly to the peak") {
  ScheduleConfig s;
  s.warmup_steps = 4;
  CHECK(schedule_factor(s, 0, 100) == Approx(0.25));
  CHECK(schedule_factor(s, 1, 100) == Approx(0.5));
  CHECK(schedule_factor(s, 3, 100) == Approx(1.0));
  CHECK(schedule_factor(s, 4, 100) == Approx(1.0));
}

TEST_CASE("cosine falls from 1 through the middle to min_ratio") {
  ScheduleConfig s;
  s.name = ScheduleKind::cosine;
  s.min_ratio = 0.1;
  CHECK(schedule_factor(s, 0, 100) == Approx(1.0));
  CHECK(schedule_factor(s, 50, 100) == Approx(0.55));
  CHECK(schedule_factor(s, 25, 100) == Approx(0.1 + 0.45 * (1 + std::sqrt(0.5))));
  CHECK(schedule_factor(s, 100, 100) == Approx(0.1));
}

TEST_CASE("linear, constant and wsd") {
  ScheduleConfig s;
  s.min_ratio = 0.2;
  s.warmup_steps = 10;
  s.name = ScheduleKind::linear;
  CHECK(schedule_factor(s, 60, 110) == Approx(0.6));
  s.name = ScheduleKind::constant;
  CHECK(schedule_factor(s, 109, 110) == 1.0);
}

TEST_CASE("wsd falls over its last steps and has min_ratio at the last") {
  ScheduleConfig s;
  s.name = ScheduleKind::wsd;
  s.min_ratio = 0.2;
  s.warmup_steps = 10;
  s.decay_steps = 20;
  CHECK(schedule_factor(s, 89, 110) == 1.0);
  CHECK(schedule_factor(s, 90, 110) == Approx(1 - 0.8 / 20));
  CHECK(schedule_factor(s, 99, 110) == Approx(0.6));
  CHECK(schedule_factor(s, 109, 110) == Approx(0.2));
  s.decay_shape = DecayShape::cosine;
  CHECK(schedule_factor(s, 89, 110) == 1.0);
  CHECK(schedule_factor(s, 94, 110) == Approx(0.2 + 0.4 * (1 + std::sqrt(0.5))));
  CHECK(schedule_factor(s, 99, 110) == Approx(0.6));
  CHECK(schedule_factor(s, 109, 110) == Approx(0.2));
  s.decay_steps = 1;
  CHECK(schedule_factor(s, 108, 110) == 1.0);
  CHECK(schedule_factor(s, 109, 110) == Approx(0.2));
}

TEST_CASE("the wsd of config_version 1 has min_ratio after the last step") {
  ScheduleConfig s;
  s.name = ScheduleKind::wsd;
  s.min_ratio = 0.1;
  s.reaches_minimum = false;
  s.decay_steps = 6;
  CHECK(schedule_factor(s, 94, 100) == 1.0);
  CHECK(schedule_factor(s, 99, 100) == Approx(0.25));
  CHECK(schedule_factor(s, 100, 100) == Approx(0.1));
}

TEST_CASE("the steps that do not depend on the length are those whose factors no length changes") {
  const int64_t steps = 40;
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::wsd, ScheduleKind::cosine, ScheduleKind::linear}) {
    for (const auto& [warmup, reaches_minimum] :
         {std::pair(0, true), std::pair(5, true), std::pair(5, false)}) {
      ScheduleConfig s;
      s.name = kind;
      s.warmup_steps = warmup;
      s.reaches_minimum = reaches_minimum;
      s.decay_steps = kind == ScheduleKind::wsd ? 10 : 0;
      // Found by comparison with longer runs.
      int64_t same = 0;
      const auto agree = [&](int64_t step) {
        for (int64_t other = steps; other <= 200; ++other) {
          if (schedule_factor(s, step, other) != schedule_factor(s, step, steps)) return false;
        }
        return true;
      };
      while (same < steps && agree(same)) ++same;
      INFO(static_cast<int>(kind) << " warm-up " << warmup);
      CHECK(std::min(steps, steps_independent_of_length(s, steps)) == same);
    }
  }
}

#pragma once
// How long the steps of a run wait for their tokens.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "train/step_result.h"

namespace bamtrain {

/// Accumulates the waits of steps and warns if they are long.
class DataWait {
 public:
  static constexpr double kShare = 0.05;       // of the time; more than this is worth a warning
  static constexpr double kInterval = 10;      // minimum seconds per measurement
  static constexpr double kSilence = 10 * 60;  // minimum seconds between two warnings

  /// Adds finished steps.
  void steps(std::span<const StepResult> ended);
  /// Mean wait per step in ms since the last call; 0 if there was no step.
  double take_mean();
  /// A warning if steps waited for more than kShare of the time, at most once in kSilence seconds.
  /// `seconds`: since the first step began; must not decrease.
  std::optional<std::string> take_warning(double seconds);

 private:
  double line_ = 0;  // seconds waited
  int64_t line_steps_ = 0;
  double interval_ = 0, interval_begin_ = 0;
  std::optional<double> told_;
};

}  // namespace bamtrain

#pragma once
// How long the steps of a run stand for their tokens.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "train/step_result.h"

namespace bamtrain {

/// Takes what steps waited, and says it where it matters.
class DataWait {
 public:
  static constexpr double kShare = 0.05;       // of the time, that is worth a word
  static constexpr double kInterval = 10;      // seconds that are looked at, at least
  static constexpr double kSilence = 10 * 60;  // between two words, at least

  /// Steps that have ended.
  void steps(std::span<const StepResult> ended);
  /// Milliseconds of a step, mean of those since the last call; 0 of none.
  double take_mean();
  /// A warning where steps waited for more than kShare of the time, once in kSilence seconds.
  /// `seconds`: since the first step began, never fewer than before.
  std::optional<std::string> take_warning(double seconds);

 private:
  double line_ = 0;  // seconds waited
  int64_t line_steps_ = 0;
  double interval_ = 0, interval_begin_ = 0;
  std::optional<double> told_;
};

}  // namespace bamtrain

#pragma once
// What a user sees while a run trains: one live line on a terminal, plain lines elsewhere.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "train/step_result.h"

namespace bamtrain {

class Progress {
 public:
  /// `flops_per_token` as in train/train.h: 6 N and attention; `matrix_rate` the FLOP/s of matrix
  /// products measured here, 0 where unknown. `quiet` prints nothing: all ranks but the first.
  Progress(int64_t first_step, int64_t steps, int64_t tokens_per_step, double flops_per_token,
           double matrix_rate, bool quiet);

  /// Steps that have ended since the last call: at least one.
  void steps(std::span<const StepResult> ended);
  /// A line of its own, above the live line.
  void note(const std::string& text);
  /// Ends the live line.
  void finish();

  double tokens_per_second() const;  // of this run

 private:
  std::string line(const StepResult& s) const;

  using Clock = std::chrono::steady_clock;
  int64_t first_step_, steps_, tokens_per_step_;
  double flops_per_token_, matrix_rate_;
  bool quiet_, terminal_;
  Clock::time_point start_, last_print_;
  int64_t done_ = 0;  // steps of this run
  double smoothed_ = 0, weight_ = 0;
  bool live_ = false;
};

/// "3m20s", "1h04m", "2d03h".
std::string format_duration(double seconds);

/// Resident memory of this process in bytes; 0 where the system does not tell.
int64_t resident_bytes();

}  // namespace bamtrain

#pragma once
// What a user sees while a run trains: one live line on a terminal, plain lines elsewhere.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/terminal.h"
#include "train/step_result.h"

namespace bamtrain {

/// What the line shows.
struct ProgressState {
  StepResult result;
  int64_t steps = 0;
  double smoothed = 0;  // loss
  double tokens_per_second = 0;
  double share = 0;            // MFU; 0: unknown
  int64_t resident_bytes = 0;  // memory of this process
  double seconds_left = 0;
  std::optional<double> total_seconds = std::nullopt;  // of the run, once its steps have ended
};

/// `share`, or 0 (unknown) where it is above 1 or below 0.05: the peak was measured at a bad
/// moment, or is none to compare with.
double plausible_mfu(double share);

/// "120/19251 loss 6.1234 (6.2345) |g| 0.51 lr 1.0e-03 eta 2d03h 123k tok/s (82%) 3.1G", or as many
/// of these as `columns` hold with one to spare; "total 2d03h" in the place of eta once the steps
/// have ended. REQUIRES: columns >= 1.
std::string progress_line(const ProgressState& state, size_t columns);

class Progress {
 public:
  /// `flops_per_token` as in run/train.h: 6 N and attention. `quiet` prints nothing: all ranks
  /// but the first. `seconds_before`: of the run's earlier parts.
  Progress(int64_t first_step, int64_t steps, double flops_per_token, bool quiet,
           double seconds_before = 0);
  /// Ends the live line, as an error in mid-run leaves it.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// FLOP/s of matrix products as measured here (run/peak_matmul.h), by all processes together.
  /// The best of all that were told holds; unknown before.
  void take_peak_matmul(double rate);

  /// Steps that have ended since the last call: at least one.
  void steps(std::span<const StepResult> ended);
  /// A line of its own, above the live line.
  void note(const std::string& text);
  /// The steps have ended: a line that stays says how the last one was, and the total time.
  void finish();

  /// Of the run: seconds_before, and since this was constructed.
  double total_seconds() const;
  // Since this was constructed.
  double seconds() const;
  double tokens_per_second() const;
  double mfu() const;  // of the measured peak matmul throughput; 0: unknown

 private:
  ProgressState state(const StepResult& s) const;
  void print_line(const ProgressState& s);
  /// What takes the live line off the terminal.
  std::string erasure() const;

  using Clock = std::chrono::steady_clock;
  int64_t first_step_, steps_;
  double flops_per_token_, seconds_before_, peak_matmul_ = 0;
  bool quiet_;
  Terminal terminal_;
  Clock::time_point start_, last_print_;
  int64_t done_ = 0, tokens_ = 0;  // steps since this was constructed, and their tokens
  std::optional<StepResult> last_;
  double smoothed_ = 0, weight_ = 0;
  size_t live_ = 0;  // columns of the live line; 0: there is none
};

/// "3m20s", "1h04m", "2d03h".
std::string format_duration(double seconds);

/// Resident memory of this process in bytes; 0 where the system does not tell.
int64_t resident_bytes();

}  // namespace bamtrain

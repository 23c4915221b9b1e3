#pragma once
// Terminal output of a training run: one live line on a terminal, plain lines elsewhere.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/terminal.h"
#include "record/line_pace.h"
#include "train/step_result.h"

namespace bamtrain {

/// Content of the progress line.
struct ProgressState {
  StepResult result;
  int64_t steps = 0;
  double smoothed = 0;  // loss
  double tokens_per_second = 0;
  double mfu = 0, datasheet_mfu = 0;  // against the two peaks below; 0: unknown
  int64_t resident_bytes = 0;         // memory of this process
  double seconds_left = 0;
  std::optional<double> total_seconds = std::nullopt;  // of the run, set once its steps have ended
};

/// The datasheet's peak matmul throughput of a run's GPUs.
struct DatasheetPeak {
  std::string gpu;   // its name
  double flops = 0;  // FLOP/s of all processes; 0: unknown
};

/// `share`, or 0 (unknown) if it is above 1 or below 0.05. Then the peak was measured at a bad
/// moment or cannot be compared.
double plausible_mfu(double share);

/// "120/19251 loss 6.1234 (6.2345) |g| 0.51 lr 1.0e-3 eta 2d03h 123,456 tok/s 82% 3.1G", cut to the
/// leading parts that fit into `columns` - 1. MFU is "82%/61%" if the datasheet's is known. Once
/// the steps have ended, "total 2d03h" replaces eta. REQUIRES: columns >= 1.
std::string progress_line(const ProgressState& state, size_t columns);

/// What the columns of a progress line are. `measured` is the peak in FLOP/s, 0 if unknown.
std::string progress_legend(double measured, const DatasheetPeak& datasheet);

class Progress {
 public:
  /// `flops_per_token` as in run/train.h: 6 N and attention. `quiet` prints nothing, for all ranks
  /// but the first. `seconds_before`: duration of the run's earlier parts.
  Progress(int64_t first_step, int64_t steps, double flops_per_token, bool quiet,
           double seconds_before = 0, LinePace::Now now = LinePace::Clock::now);
  /// Ends the live line, for example after an error in mid-run.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// FLOP/s of matrix products, measured here (run/peak_matmul.h), summed over processes. The
  /// highest rate of all calls counts; unknown before the first.
  void take_peak_matmul(double rate);
  void set_datasheet_peak(const DatasheetPeak& peak) { datasheet_ = peak; }

  /// Adds finished steps, at least one. The legend comes before the first line.
  void steps(std::span<const StepResult> ended);
  /// Shows the progress of an evaluation that begins now, in lines like those of steps and as
  /// often. Must not outlive this object.
  std::function<void(double share)> evaluation(const std::string& what);
  /// Prints a line of its own above the live line.
  void note(const std::string& text);
  /// Prints a final line with the last step and the total time.
  void finish();

  /// Duration of the run in seconds: seconds_before plus seconds().
  double total_seconds() const;
  // Since construction.
  double seconds() const;
  double tokens_per_second() const;
  double mfu() const;  // relative to the measured peak matmul throughput; 0: unknown

 private:
  ProgressState state(const StepResult& s) const;
  double datasheet_mfu() const;
  void print_state(const ProgressState& s);
  /// Prints a line that the next one replaces on a terminal.
  void print_line(const std::string& line);
  /// The characters that erase the live line.
  std::string erasure() const;

  int64_t first_step_, steps_;
  double flops_per_token_, seconds_before_, peak_matmul_ = 0;
  DatasheetPeak datasheet_;
  bool quiet_, explained_ = false;  // whether the legend was printed
  Terminal terminal_;
  LinePace pace_;
  LinePace::Clock::time_point start_;
  int64_t done_ = 0, tokens_ = 0;  // steps since construction, and their tokens
  std::optional<StepResult> last_;
  double smoothed_ = 0, weight_ = 0;
  size_t live_ = 0;  // columns of the live line; 0: no live line
};

/// "3m20s", "1h04m", "2d03h".
std::string format_duration(double seconds);

/// Resident memory of this process in bytes; 0 if the system does not report it.
int64_t resident_bytes();

}  // namespace bamtrain

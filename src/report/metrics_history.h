#pragma once
// A run's metrics as pictures show them, in memory that does not grow with the run.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/run_lines.h"

namespace bamtrain {

/// A line of metrics.jsonl, and the loss smoothed up to there.
struct HistoryLine : MetricsLine {
  double smoothed_loss = 0;
};

/// Takes lines one after the other and keeps at most kMost of them. Where more have come, the steps
/// so far are divided into kColumns equal parts, and of each part stay the first line, the last,
/// and those with the lowest and the highest value of what is drawn: no peak is lost, nothing is
/// averaged.
class MetricsHistory {
 public:
  static constexpr size_t kColumns = 512;  // more than a chart has pixels
  static constexpr size_t kMost = 32 * kColumns;
  static constexpr int64_t kBytes = static_cast<int64_t>(kMost * sizeof(HistoryLine));

  /// REQUIRES: a step after the one before.
  void add(const MetricsLine& line);

  /// Ascending steps; the first and the last are always among them, and the last validation.
  const std::vector<HistoryLine>& lines() const { return lines_; }
  int64_t added() const { return added_; }

 private:
  void downsample();

  std::vector<HistoryLine> lines_;
  int64_t added_ = 0;
};

}  // namespace bamtrain

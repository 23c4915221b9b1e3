#pragma once
// A run's metrics for charts, in constant memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/run_lines.h"

namespace bamtrain {

/// A line of metrics.jsonl, and the smoothed loss up to it.
struct HistoryLine : MetricsLine {
  double smoothed_loss = 0;
};

/// Keeps at most kMost of the lines added. When that is exceeded, the steps so far are divided into
/// kColumns equal parts. Each part keeps its first and last line, and the lines with the lowest and
/// highest value of each plotted quantity: no peak is lost, nothing is averaged. It also keeps its
/// last validation.
class MetricsHistory {
 public:
  static constexpr size_t kColumns = 512;  // more than a chart has pixels
  static constexpr size_t kMost = 32 * kColumns;
  static constexpr int64_t kBytes = static_cast<int64_t>(kMost * sizeof(HistoryLine));

  /// REQUIRES: ascending steps.
  void add(const MetricsLine& line);

  /// Ascending steps; always includes the first, the last, and the last validation.
  const std::vector<HistoryLine>& lines() const { return lines_; }
  int64_t added() const { return added_; }

 private:
  void downsample();

  std::vector<HistoryLine> lines_;
  int64_t added_ = 0;
};

}  // namespace bamtrain

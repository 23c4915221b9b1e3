#pragma once
// report.html: of a run while it trains, and of several, by bamtrain report.

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "report/run.h"
#include "train/run_config.h"

namespace bamtrain {

/// What a run in `folder` is called: its name; without one, the folder's.
std::string run_label(const RunConfig& config, const std::string& folder);

/// OUT/report.html of a run that trains in this process. Reads of metrics.jsonl only what was added
/// since it was drawn last, and keeps of that what a picture shows.
class LiveReport {
 public:
  explicit LiveReport(const RunConfig& config);

  /// The memory that it takes at most, however long the run: the history of metrics, the last
  /// parameters of mechanisms with the line that has them, and the curves of priors.
  static int64_t bytes(const RunConfig& config);

  /// Draws it anew. A run of days does not end for a picture: what goes wrong is told to `warn`.
  void draw(const Warn& warn);

  std::string path() const { return config_.out_dir + "/report.html"; }

 private:
  RunConfig config_;
  std::optional<RunReader> reader_;  // since the run has a metrics.jsonl
};

}  // namespace bamtrain

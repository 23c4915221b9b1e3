#pragma once
// report.html: for one run while it trains, and for several with bamtrain report.

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "report/run.h"
#include "train/run_config.h"

namespace bamtrain {

/// The label of a run in `folder`: its name, or else the folder's.
std::string run_label(const RunConfig& config, const std::string& folder);

/// OUT/report.html of a run that trains in this process. Reads only the new part of metrics.jsonl
/// and keeps only what the charts show.
class LiveReport {
 public:
  explicit LiveReport(const RunConfig& config);

  /// An upper bound of its memory for a run of any length: the history of metrics, the last
  /// parameters of mechanisms with their line, and the curves of priors.
  static int64_t bytes(const RunConfig& config);

  /// Redraws the page. Failures go to `warn`: a chart must not end a run of days.
  void draw(const Warn& warn);

  std::string path() const { return config_.out_dir + "/report.html"; }

 private:
  RunConfig config_;
  std::optional<RunReader> reader_;  // set once the run has a metrics.jsonl
};

}  // namespace bamtrain

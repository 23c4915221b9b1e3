#pragma once
// Differences between the perplexities of a report on the same targets, paired by document: of each
// run from the first one, or of each length of a single run from its training length.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/paired_difference.h"
#include "report/report.h"

namespace bamtrain {

struct PerplexityDifference {
  PairedDifference difference;   // of perplexities
  std::optional<double> p_holm;  // corrected over the column, or over the lengths of a single run

  bool is_significant() const;
};

class PairedPerplexities {
 public:
  using Rows = std::vector<LengthPerplexity> PerplexityResult::*;

  /// Of the rows of one protocol.
  PairedPerplexities(const Runs& runs, Rows rows);

  /// The difference of a run's row; null for the baseline itself and where nothing pairs.
  const PerplexityDifference* of(size_t run, const LengthPerplexity& row) const;

  bool empty() const { return differences_.empty(); }
  /// What differences are from: a run's name, or "length 512".
  const std::string& baseline() const { return baseline_; }
  /// Sentences about what has no paired difference and why.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void pair_runs(const Runs& runs, Rows rows);
  void pair_lengths(const ReportedRun& run, Rows rows);
  void correct(const std::vector<std::pair<size_t, int64_t>>& family);

  std::map<std::pair<size_t, int64_t>, PerplexityDifference> differences_;  // by run and length
  std::string baseline_;
  std::vector<std::string> notes_;
};

}  // namespace bamtrain

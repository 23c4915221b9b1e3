#pragma once
// The difference of a table's cell from that of the reference row, by pairs: of runs with the same
// seed and data order, or, where each row has one run, of documents.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/paired_difference.h"
#include "record/perplexity_result.h"
#include "record/results.h"
#include "study/plan.h"

namespace bamtrain {

struct DoneRun {
  const StudyRun* run;
  Results results;
};

struct PairedCell {
  PairedDifference difference;   // from the reference, in the metric's units
  bool by_document = false;      // pairs are documents, not runs
  std::optional<double> p_holm;  // corrected over the column

  bool is_significant() const;
};

class PairedCells {
 public:
  /// The difference of the metric between the runs of a row and of the reference row; nullopt if
  /// fewer than two runs pair and documents do not.
  std::optional<PairedCell> cell(const std::vector<const DoneRun*>& row,
                                 const std::vector<const DoneRun*>& reference,
                                 const std::string& metric);

  /// "ROW: why its documents do not pair", once for each row.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::optional<PairedCell> by_document(const DoneRun& run, const DoneRun& reference,
                                        const std::string& metric);
  const std::optional<PerplexityResult>& perplexity(const DoneRun& run);
  void note(const std::string& row, const std::string& why);

  std::map<std::string, std::optional<PerplexityResult>> perplexities_;  // by folder
  std::vector<std::string> notes_;
};

}  // namespace bamtrain

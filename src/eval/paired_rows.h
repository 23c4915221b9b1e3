#pragma once
// What a perplexity result holds of its targets, so that rows with the same targets can be paired:
// here between lengths, in reports between models (docs/formats.md).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/clustered_mean.h"

namespace bamtrain {

class PairedRows {
 public:
  /// Sums by document that a result holds at most. A result with more has none.
  static constexpr size_t kMostSums = size_t{1} << 20;

  /// Remembers the targets of the last row in result[protocol].
  void add(const std::string& protocol, size_t row, std::string targets,
           std::vector<Cluster> clusters);

  /// Writes to the rows "targets" and "sums", and to the result "target_counts". To rows of
  /// `windows` and `last` at other lengths than the training length also "difference": from the row
  /// at that length, if both score the same targets.
  void write(int64_t training_length, nlohmann::ordered_json* result) const;

 private:
  struct Row {
    std::string protocol;
    size_t row;  // its place in result[protocol]
    std::string targets;
    std::vector<Cluster> clusters;
  };

  void write_differences(const std::string& protocol, int64_t training_length,
                         nlohmann::ordered_json* result) const;
  void write_sums(nlohmann::ordered_json* result) const;

  std::vector<Row> rows_;
};

}  // namespace bamtrain

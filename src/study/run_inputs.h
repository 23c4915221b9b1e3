#pragma once
// What a run of a study reads, by contents: a path may have other files by now.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "record/results.h"
#include "train/run_config.h"

namespace bamtrain {

struct RunInputs {
  /// A file that eval.tasks reads, whose SHA-256 a result's "of" has under `key`.
  struct File {
    std::string result, key, sha256;
  };
  nlohmann::json training;    // as describe_data; null: it cannot be opened
  nlohmann::json validation;  // as validation_values; null: there is none, or its file is gone
  std::vector<File> measured;
};

/// Reads what runs have in common once.
class RunInputsReader {
 public:
  /// `resolved`: of the same run. What cannot be read is left out: the run itself says why.
  RunInputs read(const RunConfig& config, const nlohmann::json& resolved);

 private:
  const std::string& sha256(const std::string& path);

  std::map<std::string, nlohmann::json> training_;  // by what it is opened with
  std::map<std::string, std::string> sha256_;       // by path; empty: none
};

/// Whether a checkpoint's state is of other data than the run's now.
bool is_of_other_data(const RunInputs& inputs, const nlohmann::json& state);

/// Whether results are of the files that there are now.
bool is_measured_on(const RunInputs& inputs, const Results& results);

}  // namespace bamtrain

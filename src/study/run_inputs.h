#pragma once
// The data that a run of a study reads, by content: a path may hold other files now.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "record/results.h"
#include "train/run_config.h"

namespace bamtrain {

struct RunInputs {
  /// A file that eval.tasks reads. A result stores its SHA-256 in "of" under `key`.
  struct File {
    std::string result, key, sha256;
  };
  nlohmann::json training;    // as describe_data; null if it cannot be opened
  nlohmann::json validation;  // as validation_values; null if there is none, or its file is missing
  std::vector<File> measured;
};

/// Reads inputs shared by several runs only once.
class RunInputsReader {
 public:
  /// `resolved`: of the same run. Leaves out what cannot be read; the run itself reports why.
  RunInputs read(const RunConfig& config, const nlohmann::json& resolved);

 private:
  const std::string& sha256(const std::string& path);

  std::map<std::string, nlohmann::json> training_;  // by the settings that open it
  std::map<std::string, std::string> sha256_;       // by path; empty: no such file
};

/// Whether a checkpoint's state refers to other data than the run reads now.
bool is_of_other_data(const RunInputs& inputs, const nlohmann::json& state);

/// Whether results were measured on the current files.
bool is_measured_on(const RunInputs& inputs, const Results& results);

}  // namespace bamtrain

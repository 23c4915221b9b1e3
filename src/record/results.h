#pragma once
// results.json: metrics of a finished run, for tables and for people.
//
//   {
//     "format": 2,
//     "complete": whether it has everything that the config asks for,
//     "name": ..., "config": the run's, resolved,
//     "results": {
//       "validation": {"loss": ..., "loss_error": ..., "step": ..., "of": {...}},
//       "copy@64": {"exact_match": ..., "exact_match_error": ..., ..., "step": ..., "of": {...}},
//       "last@1024": {"perplexity": ..., ...},
//       ...
//     },
//     "digest": see core/json_digest.h
//   }
//
// A metric's name is a result and a number in it: "copy@64/exact_match". "of" holds the settings of
// a result's measurement, so that an interrupted evaluation continues after the results it has.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace bamtrain {

inline constexpr const char* kResultsFile = "results.json";

/// A number with its standard error from sampling; empty: unknown.
struct Metric {
  double value = 0;
  std::optional<double> error;
};

/// Whether "NAME" or "NAME@512" is the result of a task, not of validation or perplexity by length.
bool is_task(const std::string& name);

class Results {
 public:
  /// Reads the file at `path`; empty if there is no file. Throws Error (ExitCode::io) if it cannot
  /// be read, is damaged, or is not a results file.
  explicit Results(std::string path);

  const std::string& path() const { return path_; }
  /// The run's resolved_json; null: not set.
  const nlohmann::ordered_json& config() const { return config_; }

  bool complete() const { return complete_; }

  /// Sets the run and marks it incomplete. Drops the results if they are of another model.
  void set_run(const std::string& name, nlohmann::ordered_json config);
  /// Marks the results as complete.
  void set_complete() { complete_ = true; }
  /// Adds a result, or replaces the one with this name.
  void set(const std::string& result, nlohmann::ordered_json numbers);
  /// Sorts the results in the order of these names and drops all others.
  void arrange(const std::vector<std::string>& names);
  bool has(const std::string& result) const { return results_.contains(result); }
  /// By name; each is an object.
  const nlohmann::ordered_json& all() const { return results_; }
  /// Whether there is such a result whose "of" equals `of`.
  bool has(const std::string& result, const nlohmann::ordered_json& of) const;
  /// Writes the file durably. Throws Error (ExitCode::io).
  void write() const;

  /// Empty if there is no such number or it is not finite.
  std::optional<Metric> metric(const std::string& name) const;
  /// Names of all finite numbers except errors, in the order of the results.
  std::vector<std::string> metrics() const;

 private:
  std::string path_, name_;
  bool complete_ = false;
  nlohmann::ordered_json config_;
  nlohmann::ordered_json results_ = nlohmann::ordered_json::object();
};

}  // namespace bamtrain

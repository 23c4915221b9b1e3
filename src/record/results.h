#pragma once
// results.json: what a run was measured by when it had ended, for tables and for people.
//
//   {
//     "format": 2,
//     "complete": whether all that the config asks for is there,
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
// A metric's name is that of a result and of a number in it: "copy@64/exact_match". "of" says what
// a result was measured with: an evaluation that was interrupted goes on behind those that it has.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace bamtrain {

inline constexpr const char* kResultsFile = "results.json";

/// A number with the standard error of its sampling; none: unknown.
struct Metric {
  double value = 0;
  std::optional<double> error;
};

/// Whether "NAME" or "NAME@512" is of a task: not of validation, nor of perplexity against length.
bool is_task(const std::string& name);

class Results {
 public:
  /// What the file at `path` says; none where it is not there. Error (ExitCode::io): it cannot be
  /// read, is damaged, or is none.
  explicit Results(std::string path);

  const std::string& path() const { return path_; }
  /// As resolved_json of the run; null: there is none yet.
  const nlohmann::ordered_json& config() const { return config_; }

  bool complete() const { return complete_; }

  /// The run that results are of, which has more to measure; those of another model are dropped.
  void set_run(const std::string& name, nlohmann::ordered_json config);
  /// All of it is measured.
  void set_complete() { complete_ = true; }
  /// In the place of one of that name.
  void set(const std::string& result, nlohmann::ordered_json numbers);
  /// Puts them in the order of these names, and drops others.
  void arrange(const std::vector<std::string>& names);
  bool has(const std::string& result) const { return results_.contains(result); }
  /// By name, each an object.
  const nlohmann::ordered_json& all() const { return results_; }
  /// Whether there is one whose "of" is this.
  bool has(const std::string& result, const nlohmann::ordered_json& of) const;
  /// Puts the file on the disk. Error (ExitCode::io).
  void write() const;

  /// None where there is no such number, or where it is not finite.
  std::optional<Metric> metric(const std::string& name) const;
  /// Of all finite numbers but errors, in the order of the results.
  std::vector<std::string> metrics() const;

 private:
  std::string path_, name_;
  bool complete_ = false;
  nlohmann::ordered_json config_;
  nlohmann::ordered_json results_ = nlohmann::ordered_json::object();
};

}  // namespace bamtrain

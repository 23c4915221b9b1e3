#pragma once
// A study: one base configuration, axes of hyperparameters, and what to measure. STUDY.json:
//
//   {
//     "study_version": 1,
//     "name": "copy",
//     "config": "copy-reduced.json",                 a run's, next to the study's file
//     "out_dir": "out/studies/copy",
//     "set": {"train.steps": 2000},                  keys of every run; optional
//     "axes": [
//       {"name": "attention", "values": {"rope": {"model.attention.prior.name": "rope"}, ...}},
//       {"key": "optimizer.lr", "values": [1e-3, 2e-3], "for": "choose"},
//       {"key": "seed", "values": [1, 2, 3], "for": "repeat"}
//     ],
//     "choose": {"metric": "validation/loss", "mode": "min"},
//     "measures": ["copy@*/exact_match"],
//     "reference": "rope",                           optional, like take_over
//     "take_over": ["out/earlier/runs"]
//   }
//
// Axes with "for": "rows", the default, make the rows of the table. For "choose" axes, the best
// value is chosen for each row. Over "repeat" axes, the table has means.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace bamtrain {

/// Keys of a run's configuration and their values.
using StudySettings = std::vector<std::pair<std::string, nlohmann::json>>;

enum class AxisUse { rows, choose, repeat };

struct StudyAxis {
  struct Value {
    std::string label;
    StudySettings settings;
  };
  std::string name;
  AxisUse use = AxisUse::rows;
  std::vector<Value> values;  // at least one, with unique labels
};

struct Study {
  std::string file;  // it was read from
  std::string name, out_dir;
  std::string config;  // path of the base configuration
  StudySettings set;
  std::vector<StudyAxis> axes;  // at least one
  /// For "choose" axes: chosen by the mean over repeats of this metric (train/metric_name.h).
  std::string choose_metric = "validation/loss";
  bool choose_highest = false;
  std::vector<std::string> measures;   // metrics, with * for any text: the table's columns
  std::string reference;               // the row to compare others with; empty: no comparison
  std::vector<std::string> take_over;  // folders that contain runs, finished or not
};

/// Reads the study in the file at `path`. Throws Error (ExitCode::config) naming a missing, unknown
/// or invalid key; (ExitCode::io) if the file cannot be read.
Study read_study(const std::string& path);

}  // namespace bamtrain

#pragma once
// A study: one base configuration, axes of what is varied, what is measured. STUDY.json:
//
//   {
//     "study_version": 1,
//     "name": "copy",
//     "config": "copy-reduced.json",                 a run's, beside the study's file
//     "out_dir": "out/studies/copy",
//     "set": {"train.steps": 2000},                  keys of every run; may be left out
//     "axes": [
//       {"name": "attention", "values": {"rope": {"model.attention.prior.name": "rope"}, ...}},
//       {"key": "optimizer.lr", "values": [1e-3, 2e-3], "for": "choose"},
//       {"key": "seed", "values": [1, 2, 3], "for": "repeat"}
//     ],
//     "choose": {"metric": "validation/loss", "mode": "min"},
//     "measures": ["copy@*/exact_match"],
//     "reference": "rope",                           may be left out, as take_over may
//     "take_over": ["out/earlier/runs"]
//   }
//
// Axes "for" rows, which they are where they do not say, make the rows of the table; of those to
// choose the best value is taken for each row; over those to repeat it has means.

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
  std::vector<Value> values;  // at least one; labels differ
};

struct Study {
  std::string file;  // that it was read from
  std::string name, out_dir;
  std::string config;  // path of the base configuration
  StudySettings set;
  std::vector<StudyAxis> axes;  // at least one
  /// Of an axis to choose: by the mean over repeats of this metric (train/metric_name.h).
  std::string choose_metric = "validation/loss";
  bool choose_highest = false;
  std::vector<std::string> measures;   // metrics, * for any text: the table's columns
  std::string reference;               // a row that the others are compared with; empty: none
  std::vector<std::string> take_over;  // folders that hold runs, finished or not
};

/// The study in the file at `path`. Error (ExitCode::config) naming the key that is missing,
/// unknown or none; (ExitCode::io) where it cannot be read.
Study read_study(const std::string& path);

}  // namespace bamtrain

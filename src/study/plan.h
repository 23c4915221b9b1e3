#pragma once
// The runs of a study, and the state of each.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "study/run_inputs.h"
#include "study/study.h"
#include "train/run_config.h"

namespace bamtrain {

struct StudyRun {
  std::string row;                   // label of its row in the table; unique
  std::vector<std::string> chosen;   // its values of the "choose" axes
  std::vector<std::string> repeats;  // its values of the "repeat" axes
  std::string label;                 // of all axes
  std::string slug;                  // for file names; unique
  std::string folder;                // the run's out_dir
  bool reused = false;               // it is in a folder of take_over
  RunConfig config;
  nlohmann::json resolved;
  RunInputs inputs;
};

/// The maximum number of runs in a study.
inline constexpr int64_t kMostRuns = 10'000;
/// Throws Error (ExitCode::config) if a study has more.
void check_run_count(const Study& study);

/// All combinations of the axes' values, rows before choices before repeats. A run that exists in a
/// folder of take_over with the same configuration stays there. Each such folder is used by one
/// run: one that is done there, else the first. Throws Error (ExitCode::config) with the study's
/// file and the run if
/// - a configuration is invalid, or two runs are the same,
/// - two labels make one name,
/// - a run does not measure what the study chooses by, or no run has a measure,
/// - the reference is not a row,
/// - or there are more than kMostRuns.
std::vector<StudyRun> runs_of(const Study& study);

struct RunState {
  /// other: the folder has a run of another configuration; damaged: the state cannot be determined.
  enum class Kind { to_do, begun, done, diverged, other, damaged } kind = Kind::to_do;
  int64_t step = 0;                  // of its newest checkpoint
  std::string message = {};          // why it is diverged, other or damaged
  ExitCode code = ExitCode::config;  // of other and damaged
};

/// The state on disk. Done: everything that the configuration asks for is measured.
RunState state_of(const Study& study, const StudyRun& run);

/// Records that the run's loss or gradients were not finite, so that it is not trained again.
void record_diverged(const Study& study, const StudyRun& run, const std::string& message);

/// Files of a run that a study keeps outside the run's folder.
std::string config_file(const Study& study, const StudyRun& run);
std::string log_file(const Study& study, const StudyRun& run);

}  // namespace bamtrain

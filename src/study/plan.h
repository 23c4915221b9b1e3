#pragma once
// The runs of a study, and how far each is.

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
  std::string row;                   // of the table, by its label, which no other row has
  std::vector<std::string> chosen;   // the values of the axes to choose
  std::vector<std::string> repeats;  // and to repeat
  std::string label;                 // of all
  std::string slug;                  // for the names of files; different for each run
  std::string folder;                // out_dir of the run
  bool reused = false;               // it is one of take_over
  RunConfig config;
  nlohmann::json resolved;
  RunInputs inputs;
};

/// What no study has more of.
inline constexpr int64_t kMostRuns = 10'000;

/// Every combination of the axes' values, rows before choices before repeats. A run that is in a
/// folder of take_over with the same configuration stays there; each such folder is of one run: of
/// one that is done there, or else of the first. Error (ExitCode::config) naming the study's file
/// and the run where its configuration is none, where two labels make one name or two runs are the
/// same, where it is not measured by what the study chooses by, for measures that no run has, for a
/// reference that is no row, and for more than kMostRuns.
std::vector<StudyRun> runs_of(const Study& study);

struct RunState {
  /// other: the folder has a run of another configuration; damaged: it cannot be told.
  enum class Kind { to_do, begun, done, diverged, other, damaged } kind = Kind::to_do;
  int64_t step = 0;                  // of its newest checkpoint
  std::string message = {};          // why it diverged, is another or damaged
  ExitCode code = ExitCode::config;  // of these two
};

/// What the disk says. Done: it is measured as its configuration asks.
RunState state_of(const Study& study, const StudyRun& run);

/// Notes that the run's loss or gradients were not finite, so that it is not trained again.
void record_diverged(const Study& study, const StudyRun& run, const std::string& message);

/// Where a study keeps what belongs to a run beside its folder.
std::string config_file(const Study& study, const StudyRun& run);
std::string log_file(const Study& study, const StudyRun& run);

}  // namespace bamtrain

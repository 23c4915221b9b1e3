#pragma once
// What a training run has left in its folder, as the files say it: metrics.jsonl, perplexity.json,
// samples.jsonl, starts.json, results.json. (A checkpoint's config is for the caller, who knows
// configs.)

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "record/perplexity_result.h"
#include "record/run_lines.h"
#include "report/measured_tasks.h"
#include "report/metrics_history.h"

namespace bamtrain {

/// The lines of a file of JSON objects, one per line, that a run appends to.
class JsonLines {
 public:
  explicit JsonLines(std::string path) : path_(std::move(path)) {}

  /// Calls `line` with each line that came since the last call. A last line without its end is one
  /// that is being written: it waits for the next call. No such file: no lines. Error
  /// (ExitCode::io) naming file and line for anything but an object (record/run_lines.h).
  void read(const std::function<void(const JsonObject& line)>& line);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int64_t bytes_ = 0, lines_ = 0;  // read so far
};

/// What starts.json says of the last start: facts in words, those that it has.
struct StartFacts {
  std::string version, commit, compiler, libraries, host, processor, gpu, started, precision,
      device;
  int64_t processes = 0, threads = 0, parameters = 0;  // 0: it does not say
};

struct RunRecord {
  MetricsHistory metrics;
  MechanismValues parameters;  // of the last line that has them
  int64_t parameters_step = 0;
  std::optional<AttentionRecord> attention;  // of the last line that has it
  std::optional<PerplexityResult> perplexity;
  MeasuredTasks tasks;
  std::vector<Sample> samples;  // those of the last step that has any
  std::optional<StartFacts> start;
};

/// Reads a run's folder, again and again while the run goes on: only what was added.
class RunReader {
 public:
  /// Error (ExitCode::io) where `folder` is none of a run: without metrics.jsonl.
  explicit RunReader(const std::string& folder);

  /// What the folder holds now. Error (ExitCode::io) naming the file, and the line where it has
  /// lines: damaged, without what a run writes, steps that do not ascend.
  const RunRecord& update();

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  JsonLines metrics_, samples_;
  RunRecord record_;
};

/// The last entry of starts.json, a list of objects; members that are not there are left out. Error
/// (ExitCode::io).
std::optional<StartFacts> read_start(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

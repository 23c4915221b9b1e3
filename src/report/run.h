#pragma once
// Reads what a training run wrote to its folder: metrics.jsonl, perplexity.json, samples.jsonl,
// starts.json, results.json. (The caller reads the checkpoint's config.)

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

/// A file of JSON objects, one per line, that a run appends to.
class JsonLines {
 public:
  explicit JsonLines(std::string path) : path_(std::move(path)) {}

  /// Calls `line` with each line added since the last call. An unterminated last line is still
  /// being written: it waits for the next call. A missing file has no lines. Throws Error
  /// (ExitCode::io) with file and line for anything but an object (record/run_lines.h).
  void read(const std::function<void(const JsonObject& line)>& line);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int64_t bytes_ = 0, lines_ = 0;  // read so far
};

/// The last start in starts.json; missing facts are empty.
struct StartFacts {
  std::string version, commit, compiler, libraries, host, processor, gpu, started, precision,
      device;
  int64_t processes = 0, threads = 0, parameters = 0;  // 0: missing
};

struct RunRecord {
  MetricsHistory metrics;
  MechanismValues parameters;  // from the last line that has them
  int64_t parameters_step = 0;
  std::optional<AttentionRecord> attention;  // from the last line that has it
  std::optional<PerplexityResult> perplexity;
  MeasuredTasks tasks;
  std::vector<Sample> samples;  // samples of the last step that has any
  std::optional<StartFacts> start;
};

/// Reads a run's folder repeatedly while the run continues: only what was added.
class RunReader {
 public:
  /// Throws Error (ExitCode::io) if `folder` is not a run's: it has no metrics.jsonl.
  explicit RunReader(const std::string& folder);

  /// Returns the current content of the folder. Throws Error (ExitCode::io) with the file, and the
  /// line if it has lines: damaged, not what a run writes, or steps that do not ascend.
  const RunRecord& update();

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  JsonLines metrics_, samples_;
  RunRecord record_;
};

/// The last entry of starts.json, a list of objects; missing members are skipped. Throws Error
/// (ExitCode::io) if it is malformed.
std::optional<StartFacts> read_start(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

#pragma once
// What a training run has left in its folder, as the files say it: metrics.jsonl, perplexity.json,
// samples.jsonl. (A checkpoint's config is for the caller, who knows configs.)

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace bamtrain {

/// The lines of a file of JSON objects, one per line, that a run appends to.
class JsonLines {
 public:
  explicit JsonLines(std::string path) : path_(std::move(path)) {}

  /// Calls `line` with each line that came since the last call, and its place "FILE:NUMBER". A last
  /// line without its end is one that is being written: it waits for the next call. No such file:
  /// no lines. Error (ExitCode::io) naming file and line for anything but an object.
  void read(const std::function<void(const nlohmann::json&, const std::string& where)>& line);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int64_t bytes_ = 0, lines_ = 0;  // read so far
};

/// A standard error as a file has it. NaN: unknown, of a single document or sequence; none: the
/// file was written before there were any.
using StandardError = std::optional<double>;

/// A line of metrics.jsonl. NaN: it does not say.
struct MetricsLine {
  int64_t step = 0;
  double tokens, loss, lr, grad_norm, tokens_per_second;
  double validation_loss, seconds, matrix_rate_share;
  StandardError validation_loss_error = std::nullopt;
};

/// A protocol's result at one length, or in the bin that ends there.
struct LengthPerplexity {
  int64_t length = 0;
  double perplexity = 0;
  StandardError error = std::nullopt;
};

/// perplexity.json.
struct PerplexityResult {
  int64_t step = 0, training_length = 0, last_tokens = 0;
  std::string data_fingerprint;
  std::vector<LengthPerplexity> windows, last, bins;  // ascending
};

/// A line of samples.jsonl.
struct Sample {
  int64_t step = 0;
  std::string prompt, text;
};

/// The values of mechanisms' parameters by name, as "parameters" of metrics.jsonl has them.
using MechanismValues = std::map<std::string, std::vector<double>>;

using HeadMeans = std::vector<std::vector<double>>;  // (layers, heads)

/// "attention" of metrics.jsonl.
struct AttentionRecord {
  int64_t windows = 0;
  HeadMeans entropy, support;
  HeadMeans live_tiles;  // empty where an earlier program wrote the line
};

struct RunRecord {
  std::vector<MetricsLine> metrics;  // ascending steps
  MechanismValues parameters;        // of the last line that has them
  int64_t parameters_step = 0;
  std::optional<AttentionRecord> attention;  // of the last line that has it
  std::optional<PerplexityResult> perplexity;
  std::vector<Sample> samples;  // those of the last step that has any
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

/// perplexity.json, as `bamtrain eval --output` writes it. Error (ExitCode::io).
PerplexityResult read_perplexity(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

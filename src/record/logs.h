#pragma once
// The files that a run appends to: metrics.jsonl and, if configured, samples.jsonl and TensorBoard
// event files.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "record/event_file.h"
#include "record/step_lines.h"
#include "train/run_config.h"
#include "train/trainer.h"

namespace bamtrain {

/// A parameter of a prior or a scale.
struct Learned {
  const Parameter* parameter;
  std::vector<float> values;
};

/// The current values of all mechanism parameters, from all master weights (elements) P.
std::vector<Learned> mechanism_parameters(const Trainer& trainer, const Tensor& master_weights);

/// "parameters" of a line of metrics.jsonl. Leaves out parameters of more than kMostOfALine
/// numbers, since matrices as large as a layer's would make lines of many megabytes. Also leaves
/// out those that would exceed kMostOfAll numbers in total, so that the line can be read again
/// (LineReader::kMost).
constexpr size_t kMostOfALine = size_t{1} << 16, kMostOfAll = size_t{1} << 20;
nlohmann::ordered_json parameters_json(const std::vector<Learned>& parameters);

/// "attention" of a line of metrics.jsonl.
nlohmann::ordered_json attention_json(const AttentionMeans& means);

/// How lines of metrics.jsonl and samples.jsonl are checked.
StepLineKind metrics_lines();
StepLineKind sample_lines();

/// Every member may throw Error (ExitCode::io).
class Logs {
 public:
  /// Opens the logs of the run in c.out_dir, cut back to `step`. Damaged lines that are lost by
  /// this go to `warn`.
  Logs(const RunConfig& c, int64_t step, const Warn& warn);

  /// "seconds" of the last kept line of metrics.jsonl: the duration of the run's earlier parts. 0
  /// if there is no line.
  double seconds() const { return metrics_.last().value("seconds", 0.0); }

  /// Writes a line of metrics.jsonl. TensorBoard gets its floating-point numbers and the results of
  /// "tasks" as scalars. From "attention" it gets the means over heads per layer as scalars and the
  /// heads as histograms.
  void write(const nlohmann::ordered_json& line);
  /// Writes TensorBoard histograms.
  void write(int64_t step, const std::vector<Learned>& parameters);
  /// Writes lines of samples.jsonl. REQUIRES: c.sample has prompts.
  void write_samples(const std::vector<nlohmann::ordered_json>& lines);
  /// Syncs all files to disk. Files that were removed or cut in the meantime go to `warn`.
  void sync(const Warn& warn);

 private:
  void write_attention(int64_t step, const nlohmann::ordered_json& attention);

  StepLines metrics_;
  std::optional<StepLines> samples_;
  std::optional<EventFile> events_;
};

}  // namespace bamtrain

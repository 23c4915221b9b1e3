#pragma once
// What a run appends to as it goes: metrics.jsonl and, where asked for, samples.jsonl and
// TensorBoard's event files.

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

/// What the mechanisms have learned.
std::vector<Learned> mechanism_parameters(const Trainer& trainer);

/// "parameters" of a line of metrics.jsonl: those of at most kMostOfALine numbers, since matrices
/// of the size of a layer's own would make lines of many megabytes, as far as they are kMostOfAll
/// together, so that the line is one which is read again (LineReader::kMost).
constexpr size_t kMostOfALine = size_t{1} << 16, kMostOfAll = size_t{1} << 20;
nlohmann::ordered_json parameters_json(const std::vector<Learned>& parameters);

/// "attention" of a line of metrics.jsonl.
nlohmann::ordered_json attention_json(const AttentionMeans& means);

/// What lines of metrics.jsonl and of samples.jsonl are.
StepLineKind metrics_lines();
StepLineKind sample_lines();

/// Every member may throw Error (ExitCode::io).
class Logs {
 public:
  /// Of the run in c.out_dir, cut back to what it wrote up to `step`. `warn` is told of lines that
  /// were damaged and thereby lost.
  Logs(const RunConfig& c, int64_t step, const Warn& warn);

  /// "seconds" of the last line of metrics.jsonl that was kept: how long the run's earlier parts
  /// took. 0 where there is none.
  double seconds() const { return metrics_.last().value("seconds", 0.0); }

  /// A line of metrics.jsonl; its floating-point numbers are TensorBoard's scalars, and of
  /// "tasks" its results', and of "attention" a layer's means over the heads, which are histograms.
  void write(const nlohmann::ordered_json& line);
  /// TensorBoard's histograms.
  void write(int64_t step, const std::vector<Learned>& parameters);
  /// Lines of samples.jsonl. REQUIRES: c.sample has prompts.
  void write_samples(const std::vector<nlohmann::ordered_json>& lines);
  /// Puts all of it on the disk. `warn` is told of files that were removed or cut meanwhile.
  void sync(const Warn& warn);

 private:
  void write_attention(int64_t step, const nlohmann::ordered_json& attention);

  StepLines metrics_;
  std::optional<StepLines> samples_;
  std::optional<EventFile> events_;
};

}  // namespace bamtrain

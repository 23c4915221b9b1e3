#pragma once
// How a model is trained: plain structs, filled by src/config and by tests.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/kinds.h"
#include "data/data_config.h"
#include "model/model_config.h"
#include "tasks/text_task.h"

namespace bamtrain {

enum class ScheduleKind { cosine, linear, constant, wsd };  // wsd: warm-up, stable, decay
enum class DecayShape { linear, cosine };                   // of wsd
enum class Reduction { tree, library };                     // how processes add their gradients
/// Of activations and products. tf32: activations in fp32, their products in TF32; f64: for tests.
enum class Precision { f32, tf32, bf16, f64 };

/// Their names in configs and on the command line.
inline const std::vector<std::pair<std::string, Precision>> kPrecisionNames = {
    {"fp32", Precision::f32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}};

/// Far above any use: a number of steps beyond it is a slip of the keyboard, or damage.
inline constexpr int64_t kMaxSteps = int64_t{1} << 40;

/// train.lanes where a config leaves it open: the largest power of two up to 8 that divides the
/// micro-batches of a step.
constexpr int64_t default_accumulation_groups(int64_t micro_batches) {
  int64_t lanes = 8;
  while (micro_batches % lanes != 0) lanes /= 2;
  return lanes;
}

/// The dtype A of ops/ops.h in a run of this precision.
constexpr Dtype activation_dtype(Precision p) {
  return p == Precision::bf16 ? Dtype::bf16 : p == Precision::f64 ? Dtype::f64 : Dtype::f32;
}

/// What results say that they were computed in: "f32", "tf32", "bf16".
inline std::string computed_in(Precision p) {
  return p == Precision::tf32 ? "tf32" : name_of(activation_dtype(p));
}

struct OptimizerConfig {
  OptimizerKind name = OptimizerKind::adamw;
  double lr = 1e-3;  // peak
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // decoupled; matrices and embeddings only
  double clip = 1.0;          // global gradient norm; 0: no clipping
  /// Factors on lr, by group ("prior", "scale"), for what mixes heads beside a prior ("mix"), or by
  /// the last part of a parameter's name ("theta_alpha"); the narrower name wins.
  std::map<std::string, double> lr_multipliers;
};

struct ScheduleConfig {
  ScheduleKind name = ScheduleKind::cosine;
  int64_t warmup_steps = 0;
  double min_ratio = 0.1;   // of the peak: at the last step (wsd), or after it (cosine, linear)
  int64_t decay_steps = 0;  // wsd only: length of the final decay
  DecayShape decay_shape = DecayShape::linear;  // wsd only
  bool reaches_minimum = true;  // wsd: at the last step; false: a step later, as config_version 1
};

struct TrainConfig {
  int64_t steps = 0;
  int64_t stop_at = 0;             // end there with a checkpoint; 0: at `steps`
  int64_t tokens_per_step = 0;     // micro_batch * T * number of micro-batches
  int64_t sequences_per_step = 0;  // in its place, where given
  int64_t micro_batch = 0;         // B, sequences
  int64_t lanes = 0;               // G; 0: the largest power of two up to 8 that divides
  Reduction reduction = Reduction::tree;
  Precision precision = Precision::f32;
  Recompute recompute = Recompute::none;
};

/// The step at which a run ends.
inline int64_t last_step(const TrainConfig& t) { return t.stop_at > 0 ? t.stop_at : t.steps; }

struct CheckpointConfig {
  int64_t every = 0;            // steps between checkpoints; 0: only at the end and on signals
  int64_t keep = 3;             // newest kept
  int64_t keep_every = 0;       // additionally every checkpoint whose step divides by it; 0: none
  std::string resume = "auto";  // "auto", "never" or a checkpoint folder
  std::vector<std::string> allow_change;  // config keys that may differ on resume
  /// The checkpoint at which this metric (record/results.h) was best so far is kept, and is what
  /// results are of; empty: the last is.
  std::string best_metric;
  bool best_is_highest = false;
};

/// A task that a run is measured on.
struct TaskEvaluation {
  std::variant<TaskRequest, TextTaskRequest> request;
  /// Steps between, on other sequences than those of the end where they are drawn; 0: at the end
  /// alone.
  int64_t every = 0;

  /// REQUIRES: no task of texts.
  const TaskRequest& trained() const { return std::get<TaskRequest>(request); }
};

struct EvalConfig {
  int64_t every = 0;                 // steps between validation passes; 0: only at the end
  int64_t tokens = 0;                // per pass; 0: the whole validation set
  std::vector<int64_t> lengths;      // perplexity against length at the end; empty: none
  bool require_all_lengths = false;  // whether a length that no document has is an error
  /// Of that, targets per length and protocol; 0: all; none: `tokens`.
  std::optional<int64_t> length_tokens;
  int64_t last_tokens = 0;  // of its windows, for protocol last; 0: 256, or the shortest length
  int64_t attention = 8;    // windows of a pass at whose attention it looks
  std::vector<TaskEvaluation> tasks;
};

/// Where a run that starts afresh takes its parameters from.
struct InitFromConfig {
  std::string folder;  // with safetensors under the model's names; empty: initial values
  /// Parameters of mechanisms that the folder has not: "prior" (with "mix"), "mix", "scale",
  /// "normalizer" or the last part of a name ("theta_alpha"). They keep their initial values.
  std::vector<std::string> absent;
  bool optimizer = false;  // whether the folder is a checkpoint, whose moments are taken too
  std::string model_type;  // of a folder that does not say it: "llama" or "gpt2"; empty: it does
  bool any_tokenizer = false;  // whether the weights may be of another than the shards
};

/// Texts that the model writes while it is trained; see eval/sampling.h.
struct SampleConfig {
  int64_t every = 0;                 // steps between samples; 0: only at the end
  std::vector<std::string> prompts;  // none: no samples
  std::string tokenizer;             // its file; empty: looked for near the shards
  int64_t max_tokens = 64;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
};

struct LogConfig {
  int64_t every = 1;         // steps between lines of metrics.jsonl
  bool tensorboard = false;  // event files beside it
};

}  // namespace bamtrain

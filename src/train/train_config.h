#pragma once
// Training configuration: plain structs, filled by src/config and by tests.

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
enum class DecayShape { linear, cosine };                   // for wsd
enum class Reduction { tree, library };                     // how processes sum their gradients
/// Dtype of activations and products. tf32: activations in fp32, their products in TF32; f64: for
/// tests.
enum class Precision { f32, tf32, bf16, f64 };

/// Their names in configs and on the command line.
inline const std::vector<std::pair<std::string, Precision>> kPrecisionNames = {
    {"fp32", Precision::f32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}};

/// Far above any use: a larger number of steps is a typo or damage.
inline constexpr int64_t kMaxSteps = int64_t{1} << 40;

/// The most gradient accumulation groups of a step.
inline constexpr int64_t kMaxGroups = 1 << 16;

/// The default of train.lanes, the number of gradient accumulation groups: the largest power of two
/// up to 8 that divides the microbatches of a step.
constexpr int64_t default_accumulation_groups(int64_t micro_batches) {
  int64_t lanes = 8;
  while (micro_batches % lanes != 0) lanes /= 2;
  return lanes;
}

/// The dtype A of ops/ops.h for this precision.
constexpr Dtype activation_dtype(Precision p) {
  return p == Precision::bf16 ? Dtype::bf16 : p == Precision::f64 ? Dtype::f64 : Dtype::f32;
}

/// The name of the precision in results: "f32", "tf32", "bf16".
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
  /// Factors of lr, by group ("prior", "scale"), for a mix of heads ("mix"), or by the last part of
  /// a parameter's name ("theta_alpha"). The most specific name wins.
  std::map<std::string, double> lr_multipliers;
};

struct ScheduleConfig {
  ScheduleKind name = ScheduleKind::cosine;
  int64_t warmup_steps = 0;
  double min_ratio = 0.1;   // of the peak: at the last step (wsd), or after it (cosine, linear)
  int64_t decay_steps = 0;  // wsd only: length of the final decay
  DecayShape decay_shape = DecayShape::linear;  // wsd only
  bool reaches_minimum = true;  // wsd: at the last step; false: one step later (config_version 1)
};

inline constexpr double kMaxPeerTimeout = 1e6;  // s

struct TrainConfig {
  int64_t steps = 0;
  int64_t stop_at = 0;             // stop there and save a checkpoint; 0: at `steps`
  int64_t tokens_per_step = 0;     // micro_batch * T * number of microbatches
  int64_t sequences_per_step = 0;  // alternative to tokens_per_step; 0: not set
  int64_t micro_batch = 0;         // B, sequences
  int64_t lanes = 0;               // gradient accumulation groups; 0: default_accumulation_groups
  Reduction reduction = Reduction::tree;
  bool overlap = true;  // gradients are summed while the backward pass computes others
  std::optional<bool> shard_optimizer;  // each process keeps a part; not set: if there are several
  Precision precision = Precision::f32;
  Recompute recompute = Recompute::none;
  double peer_timeout = 60;  // s that a process waits for others in a step; 0: for ever
};

/// The step at which a run stops.
inline int64_t last_step(const TrainConfig& t) { return t.stop_at > 0 ? t.stop_at : t.steps; }

struct CheckpointConfig {
  int64_t every = 0;            // steps between checkpoints; 0: only at the end and on signals
  int64_t keep = 3;             // number of newest checkpoints to keep
  int64_t keep_every = 0;       // also keep checkpoints whose step is a multiple of this; 0: none
  std::string resume = "auto";  // "auto", "never" or a checkpoint folder
  std::vector<std::string> allow_change;  // config keys that may differ on resume
  /// The checkpoint with the best value of this metric so far (record/results.h) is kept, and final
  /// results come from it. Empty: results come from the last checkpoint.
  std::string best_metric;
  bool best_is_highest = false;
};

/// A task that a run is evaluated on.
struct TaskEvaluation {
  std::variant<TaskRequest, TextTaskRequest> request;
  /// Steps between evaluations; 0: only at the end. Where sequences are drawn, these evaluations
  /// use other sequences than the one at the end.
  int64_t every = 0;

  /// REQUIRES: the task is not of texts.
  const TaskRequest& trained() const { return std::get<TaskRequest>(request); }
};

struct EvalConfig {
  int64_t every = 0;                 // steps between validation passes; 0: only at the end
  int64_t tokens = 0;                // per pass; 0: the whole validation set
  std::vector<int64_t> lengths;      // lengths for perplexity at the end; empty: none
  bool require_all_lengths = false;  // fail if no document has one of the lengths
  /// For `lengths`: targets per length and protocol; 0: all; not set: `tokens`.
  std::optional<int64_t> length_tokens;
  int64_t last_tokens = 0;  // protocol last: tokens scored per window; 0: 256 or shortest length
  int64_t attention = 8;    // windows per validation pass with attention statistics
  std::vector<TaskEvaluation> tasks;
};

/// Initial parameters of a new run.
struct InitFromConfig {
  std::string folder;  // safetensors with the model's names; empty: initial values
  /// Mechanism parameters that the folder lacks: "prior" (includes "mix"), "mix", "scale",
  /// "normalizer" or the last part of a name ("theta_alpha"). They keep their initial values.
  std::vector<std::string> absent;
  bool optimizer = false;      // also take the optimizer state; the folder is a checkpoint
  std::string model_type;      // for folders that do not name it: "llama" or "gpt2"; empty: they do
  bool any_tokenizer = false;  // allow weights of another tokenizer than the shards'
};

/// Texts that the model generates during training; see eval/sampling.h.
struct SampleConfig {
  int64_t every = 0;                 // steps between samples; 0: only at the end
  std::vector<std::string> prompts;  // empty: no samples
  std::string tokenizer;             // its file; empty: search near the shards
  int64_t max_tokens = 64;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
};

struct LogConfig {
  int64_t every = 1;         // steps between lines of metrics.jsonl
  bool tensorboard = false;  // also write event files
};

}  // namespace bamtrain

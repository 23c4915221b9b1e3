#pragma once
// What training, validation and the evaluation of tasks ask of a model, whatever reads the
// sequences: a decoder or what else ModelKind names.

#include <cstdint>
#include <memory>
#include <optional>

#include "core/arena.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/ops.h"

namespace bamtrain {

/// What an evaluation says of a head's attention in a sequence: sums over its rows
/// (Backend::attention_statistics), and counts of tiles (ops/nonzero_blocks.h).
enum class AttentionStatistic { entropy, nonzero_keys, nonzero_blocks, visible_blocks };
constexpr int64_t kAttentionStatistics = 4;

/// How many sequences of `length` tokens an evaluation passes at a time: 8,192 tokens, one sequence
/// at least.
int64_t evaluation_batch(int64_t length);

/// A key of Backend::repeat, of the work on sequences of T tokens whose gradients lie in `memory`.
int64_t graph_key(const void* memory, int64_t T);

class Network {
 public:
  virtual ~Network() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const ParameterLayout& parameters() const = 0;
  /// What is random in training, and how many draws of it (B, T) a batch has; nothing: 0.
  virtual const Randomization& randomization() const = 0;
  virtual int64_t draws() const = 0;

  /// Registers activations, tables and scratch for batches of B sequences of T tokens; for
  /// ModelUse::generation, of a decoder, for B texts of up to T.
  /// attention_statistics: evaluate() is asked for their sums.
  virtual void plan(Arena& arena, int64_t B, int64_t T, ModelUse use,
                    Recompute recompute = Recompute::none, bool attention_statistics = false) = 0;

  /// The weights to compute with: master_weights (flat, P), which the caller owns and may change;
  /// call refresh() after every change. From the second refresh() on, no member but logits takes
  /// memory. REQUIRES: planned and committed.
  virtual void set_master_weights(Tensor master_weights) = 0;
  virtual void refresh() = 0;
  /// The copy of the master weights that products read, (elements) A; empty where A is P. Who
  /// changes both calls refresh_mechanisms() in place of refresh().
  virtual const Tensor& rounded_weights() const = 0;
  virtual void refresh_mechanisms() = 0;

  /// The micro-batch of the next forward_backward(): B sequences of T tokens, B as planned and T at
  /// most, tokens and targets (B, T) i32 in host memory, targets that count for nothing
  /// kIgnoreIndex. `positions` (draws(), B, T) i32 of draw_batch where the prior randomizes them,
  /// null elsewhere. They do not restart with documents: a rotation knows differences alone, and
  /// within a document those are the subset's. lengths (B), 1 to T, needed where attention is not
  /// causal: tokens of each sequence, behind which no other row sees anything.
  virtual void load(const int32_t* tokens, const int32_t* targets, int64_t T,
                    std::optional<int64_t> document_start, const int32_t* positions = nullptr,
                    const int32_t* lengths = nullptr) = 0;
  /// Adds to `gradients` (flat, P) those of scale * (sum of the token losses) of that micro-batch
  /// and to `loss` (1) f64 that sum, unscaled. Operations of the backend alone, the same ones for
  /// every micro-batch of T tokens: Backend::repeat may have them.
  virtual void forward_backward(double scale, Tensor gradients, Tensor loss) = 0;

  /// Error (ExitCode::config) where the prior or the scale knows no sequences of T tokens.
  virtual void check_length(int64_t T) const = 0;

  /// Token losses (b * t), 0 where the target is kIgnoreIndex, for b <= B sequences of t <= T
  /// tokens, written to losses[b * t]. attention_statistics, where given: (b, layers,
  /// kAttentionStatistics, heads), as AttentionStatistic says. likeliest, where given: (b * t), the
  /// class that is likeliest at each place with a target, kIgnoreIndex elsewhere. positions
  /// (draws(), b, t): as load()'s, where randomization().in_evaluation. lengths (b): as load()'s.
  virtual void evaluate(const int32_t* tokens, const int32_t* targets, int64_t b, int64_t t,
                        std::optional<int64_t> document_start, double* losses,
                        double* attention_statistics = nullptr, int32_t* likeliest = nullptr,
                        const int32_t* positions = nullptr, const int32_t* lengths = nullptr) = 0;

  /// Logits (b * t, O) in P, at positions that count, for tests and small exports. lengths (b) as
  /// above.
  virtual void logits(const int32_t* tokens, int64_t b, int64_t t,
                      std::optional<int64_t> document_start, Tensor out,
                      const int32_t* lengths = nullptr) = 0;
};

/// The network of config.kind. `training_length` is T of training; A the dtype of activations.
/// Error (ExitCode::config) for what the mechanisms refuse.
std::unique_ptr<Network> make_network(const ModelConfig& config, int64_t training_length,
                                      Backend& backend, Dtype activations);

}  // namespace bamtrain

#pragma once
// The interface of a model for training, validation and the evaluation of tasks: a decoder or
// another ModelKind.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/arena.h"
#include "core/flat_range.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/ops.h"

namespace bamtrain {

/// Statistics of a head's attention in a sequence: sums over its rows
/// (Backend::attention_statistics), and block counts (ops/nonzero_blocks.h).
enum class AttentionStatistic { entropy, nonzero_keys, nonzero_blocks, visible_blocks };
constexpr int64_t kAttentionStatistics = 4;

inline constexpr int kWholePass = -1;

/// Number of sequences of `length` tokens in one evaluation pass: 8,192 tokens, but at least one
/// sequence.
int64_t evaluation_batch(int64_t length);

/// The key of Backend::run_captured for sequences of T tokens, gradients in this buffer, and all
/// or one part of the backward pass.
int64_t graph_key(int64_t buffer, int64_t T, int part = kWholePass);

class Network {
 public:
  virtual ~Network() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const ParameterLayout& parameters() const = 0;
  /// What is random in training, and the number of draws (B, T) for a batch; nothing: 0.
  virtual const Randomization& randomization() const = 0;
  virtual int64_t draws() const = 0;

  /// Plans activations, tables and scratch for batches of B sequences of T tokens. For
  /// ModelUse::generation (decoders only): for B sequences of up to T. attention_statistics:
  /// evaluate() will be asked for them.
  virtual void plan(Arena& arena, int64_t B, int64_t T, ModelUse use,
                    Recompute recompute = Recompute::none, bool attention_statistics = false) = 0;

  /// Sets the weights to compute with: master_weights (flat, P), owned by the caller, who may
  /// change them and must then call refresh(). From the second refresh() on, only logits()
  /// allocates memory. A caller that sets the rounded weights itself may have the exact ones alone
  /// (ParameterLayout::exact_elements()). REQUIRES: planned and committed.
  virtual void set_master_weights(Tensor master_weights) = 0;
  virtual void refresh() = 0;
  /// The copy of the master weights that products read, (elements) A; empty if A is P. Its exact
  /// elements are not read. A caller that changes both calls refresh_mechanisms() instead of
  /// refresh().
  virtual const Tensor& rounded_weights() const = 0;
  virtual void refresh_mechanisms() = 0;

  /// Sets the microbatch of the next forward_backward(): B sequences of T tokens, B as planned and
  /// T at most as planned. tokens and targets (B, T) i32 in host memory; ignored targets are
  /// kIgnoreIndex. `positions` (draws(), B, T) i32 from draw_batch if the prior randomizes them,
  /// else null. They do not restart with documents: rotations depend only on differences, which
  /// within a document are those of the subset. lengths (B), 1 to T, required if attention is not
  /// causal: tokens of each sequence; no other row sees the padding after them.
  virtual void load(const int32_t* tokens, const int32_t* targets, int64_t T,
                    std::optional<int64_t> document_start, const int32_t* positions = nullptr,
                    const int32_t* lengths = nullptr) = 0;
  /// Adds the gradients of scale * (sum of the token losses) of that microbatch to `gradients`
  /// (flat, P), and the unscaled sum to `loss` (1) f64. Calls only the backend, with the same
  /// operations for every microbatch of T tokens: Backend::run_captured may capture them.
  void forward_backward(double scale, const Tensor& gradients, const Tensor& loss) {
    for (int part = 0; part < parts(); ++part) {
      forward_backward_part(part, scale, gradients, loss);
    }
  }
  /// The same in parts, one after another, for a caller that exchanges weights and gradients while
  /// others are computed with. Each may be captured. Their number is odd: part parts() - 1 - p goes
  /// back where part p went forward, and the one in the middle does both.
  virtual int parts() const { return 1; }
  virtual void forward_backward_part(int part, double scale, const Tensor& gradients,
                                     const Tensor& loss) = 0;
  /// Ranges of the flat buffer whose weights no part before this one reads, and whose gradients no
  /// part after parts() - 1 - part changes. Exact parameters (ParameterLayout) are of part 0, and
  /// refresh_mechanisms() reads no others. The ranges of all parts are the whole buffer, and none
  /// has both exact and rounded parameters. REQUIRES: 0 <= part <= parts() / 2.
  virtual std::vector<FlatRange> ranges_of(int part) const {
    require(part == 0, "the one part");
    const ParameterLayout& all = parameters();
    return {{0, all.exact_elements()}, {all.exact_elements(), all.elements()}};
  }

  /// Throws Error (ExitCode::config) if the prior or the scale does not support sequences of T
  /// tokens.
  virtual void check_length(int64_t T) const = 0;

  /// Writes token losses (b * t), 0 where the target is kIgnoreIndex, for b <= B sequences of t <=
  /// T tokens to losses[b * t]. If not null, also: attention_statistics (b, layers,
  /// kAttentionStatistics, heads), see AttentionStatistic; likeliest (b * t), the most likely class
  /// at each position with a target, kIgnoreIndex elsewhere. positions (draws(), b, t): as in
  /// load(), if randomization().in_evaluation. lengths (b): as in load().
  virtual void evaluate(const int32_t* tokens, const int32_t* targets, int64_t b, int64_t t,
                        std::optional<int64_t> document_start, double* losses,
                        double* attention_statistics = nullptr, int32_t* likeliest = nullptr,
                        const int32_t* positions = nullptr, const int32_t* lengths = nullptr) = 0;

  /// Logits (b * t, O) in P, at counted positions, for tests and small exports. lengths (b) as
  /// above.
  virtual void logits(const int32_t* tokens, int64_t b, int64_t t,
                      std::optional<int64_t> document_start, Tensor out,
                      const int32_t* lengths = nullptr) = 0;
};

/// The network of config.kind. `training_length` is T of training; A the dtype of activations.
/// Throws Error (ExitCode::config) if the mechanisms refuse the configuration.
std::unique_ptr<Network> make_network(const ModelConfig& config, int64_t training_length,
                                      Backend& backend, Dtype activations);

}  // namespace bamtrain

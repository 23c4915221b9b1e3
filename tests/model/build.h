#pragma once
// Small models on any backend, with their batches, for the tests of src/model.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/model.h"
#include "ops/compare.h"

namespace bamtrain::testing {

/// A mechanism with its declared defaults and these options on top.
PriorChoice prior(const std::string& name, std::map<std::string, OptionValue> options = {});
ScaleChoice scale(const std::string& name, std::map<std::string, OptionValue> options = {});
NormalizerChoice normalizer(const std::string& name,
                            std::map<std::string, OptionValue> options = {});

/// A mix of heads beside the prior of all layers.
PriorConfig mixed(const std::string& mix, PriorChoice base,
                  std::map<std::string, OptionValue> options = {});

/// Every prior, and every mix over a base without a bias, of distance and of the tokens' numbers.
std::vector<PriorConfig> every_prior();

/// Priors of the layers in turn, with their declared defaults; "dape over NAME" for a mix.
PriorConfig priors(const std::vector<std::string>& by_layer);

/// Two layers of width 24, 4 heads of 6 channels over 2 key heads, RMSNorm, SwiGLU of 20, a
/// vocabulary of 29; neither prior nor scale.
ModelConfig small_config();

/// Of ModelKind::max_retrieval, of width 24 and networks of 20; neither scale nor normalizer.
ModelConfig retrieval_config();

std::string describe(const ModelConfig& c);

/// Of fp64, fp32 and bf16 those in which this machine has matrix products.
inline const std::vector<Dtype>& usable_dtypes() {
  static const auto list = with_products({Dtype::f64, Dtype::f32, Dtype::bf16});
  return list;
}

/// Evaluation where the scale has no backward pass.
ModelUse use_of(const ModelConfig& c);

/// B sequences of T tokens, each token's target the next one.
struct Batch {
  int64_t B = 0, T = 0;
  std::vector<int32_t> tokens, targets;
  std::optional<int64_t> document_start;
  // (draws, B, T) in training, where the prior randomizes them, and in evaluation where it draws
  std::vector<int32_t> positions = {};
  std::vector<int32_t> lengths = {};  // (B), padding behind; empty: T

  /// Behind them targets count for nothing.
  void set_lengths(const std::vector<int32_t>& of_rows);
  /// For models that see sequences as a whole.
  std::vector<int32_t> lengths_or_all() const {
    return lengths.empty() ? std::vector<int32_t>(static_cast<size_t>(B), static_cast<int32_t>(T))
                           : lengths;
  }
};
/// Random tokens. Token 0 begins documents: about one in eight, now and then two in a row.
Batch random_batch(int64_t B, int64_t T, int64_t vocab, bool document_start = true);
/// Targets become classes below O.
Batch with_classes(Batch batch, int64_t O);

/// Queries and `counts` items for ModelKind::max_retrieval, T - 1 at most; the class of the item of
/// highest priority behind them.
Batch item_batch(int64_t T, const std::vector<int32_t>& counts);

/// A model with master weights, gradients and memory of its own.
class Run {
 public:
  /// Activations f64 selects the reference backend, f32 and bf16 the CPU backend. Every parameter
  /// gets a value that leaves no term trivial, exact in fp32: norms away from 1, biases and priors
  /// away from 0. The model is planned for batches of B x T, and was trained at T unless told.
  Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T,
      ModelUse use = ModelUse::training, int64_t trained_T = 0);
  /// On any device.
  Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T, Device device,
      Recompute recompute = Recompute::none, ModelUse use = ModelUse::training);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Network& network() { return *network_; }
  /// REQUIRES: a decoder.
  Model& model() { return dynamic_cast<Model&>(*network_); }
  const std::vector<Parameter>& parameters() const { return network_->parameters().all(); }

  std::vector<double> parameter(const std::string& name) const;
  void set_parameter(const std::string& name, const std::vector<double>& values);
  /// Adds to one element, and has the model read it.
  void move(const Parameter& p, int64_t i, double by);

  /// The mean of the token losses.
  double loss(const Batch& b);
  /// Its gradients, by forward_backward. Overwrites those of the call before; returns the mean
  /// loss.
  double differentiate(const Batch& b);
  std::vector<double> gradient(const std::string& name) const;
  /// The flat buffers as they are.
  const Tensor& gradients() const { return gradients_; }
  const Tensor& master_weights() const { return master_weights_; }
  int64_t planned_bytes() const { return arena_.total_bytes(); }

  /// (B T, O).
  std::vector<double> logits(const Batch& b);

 private:
  Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T, ModelUse use,
      int64_t trained_T, Device device, Recompute recompute);

  Device device_;
  std::unique_ptr<Network> network_;
  Arena arena_;
  Tensor master_weights_, gradients_, loss_;
};

/// Rounds the weights to what bf16 can hold: of two models that have them only arithmetic differs.
void round_weights(Run& run);

/// The norm of a - b, of a, and of all gradients, for relative errors.
double norm(const std::vector<double>& a);
double distance(const std::vector<double>& a, const std::vector<double>& b);

/// The distance of all gradients from the truth, and the largest of one tensor, relative to all and
/// to its own norm, or 1 % of all where that is more.
struct GradientErrors {
  double all = 0, worst = 0;
  std::string name;  // of the worst

  GradientErrors(const Run& run, const Run& truth);
};

}  // namespace bamtrain::testing

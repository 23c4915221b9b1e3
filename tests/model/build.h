#pragma once
// Small models on any backend and their batches, for the tests of src/model.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/model.h"
#include "ops/compare.h"

namespace bamtrain::testing {

/// A mechanism with its declared defaults, except for these options.
PriorChoice prior(const std::string& name, std::map<std::string, OptionValue> options = {});
ScaleChoice scale(const std::string& name, std::map<std::string, OptionValue> options = {});
NormalizerChoice normalizer(const std::string& name,
                            std::map<std::string, OptionValue> options = {});

/// A mix of heads over the base prior, in all layers.
PriorConfig mixed(const std::string& mix, PriorChoice base,
                  std::map<std::string, OptionValue> options = {});

/// Every prior, and every mix over a base without a bias, with a bias of distance, and with one of
/// the tokens' numbers.
std::vector<PriorConfig> every_prior();

/// Priors that the layers take in turn, with their declared defaults; "dape over NAME" for a mix.
PriorConfig priors(const std::vector<std::string>& by_layer);

/// Two layers of width 24, 4 heads of 6 channels over 2 key heads, RMSNorm, SwiGLU of 20, a
/// vocabulary of 29, without prior and scale.
ModelConfig small_config();

/// A model of ModelKind::max_retrieval, with width 24 and networks of 20, without scale and
/// normalizer.
ModelConfig retrieval_config();

std::string describe(const ModelConfig& c);

/// Those of fp64, fp32 and bf16 for which this machine has matrix products.
inline const std::vector<Dtype>& usable_dtypes() {
  static const auto list = with_products({Dtype::f64, Dtype::f32, Dtype::bf16});
  return list;
}

/// Evaluation if the scale has no backward pass, else training.
ModelUse use_of(const ModelConfig& c);

/// B sequences of T tokens; each token's target is the next token.
struct Batch {
  int64_t B = 0, T = 0;
  std::vector<int32_t> tokens, targets;
  std::optional<int64_t> document_start;
  // (draws, B, T). Set in training if the prior randomizes positions, and in evaluation if it draws
  // them
  std::vector<int32_t> positions = {};
  std::vector<int32_t> lengths = {};  // (B), followed by padding; empty: T

  /// Targets past these lengths are ignored.
  void set_lengths(const std::vector<int32_t>& of_rows);
  /// For models that see sequences as a whole.
  std::vector<int32_t> lengths_or_all() const {
    return lengths.empty() ? std::vector<int32_t>(static_cast<size_t>(B), static_cast<int32_t>(T))
                           : lengths;
  }
};
/// Random tokens. Token 0 begins documents: about one in eight, sometimes two in a row.
Batch random_batch(int64_t B, int64_t T, int64_t vocab, bool document_start = true);
/// Replaces targets by classes below O.
Batch with_classes(Batch batch, int64_t O);

/// For ModelKind::max_retrieval: rows of a query and `counts` items, at most T - 1. The target,
/// after them, is the class of the item with the highest priority.
Batch item_batch(int64_t T, const std::vector<int32_t>& counts);

/// A model with its own master weights, gradients and memory.
class Run {
 public:
  /// Activations f64 select the reference backend, f32 and bf16 the CPU backend. Every parameter
  /// gets a value that keeps all terms nontrivial and is exact in fp32: norms differ from 1, biases
  /// and priors from 0. The model is planned for batches of B x T. It was trained at T, unless
  /// trained_T is set.
  Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T,
      ModelUse use = ModelUse::training, int64_t trained_T = 0);
  /// The same on any device.
  Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T, Device device,
      Recompute recompute = Recompute::none, ModelUse use = ModelUse::training);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Network& network() { return *network_; }
  /// REQUIRES: the network is a decoder.
  Model& model() { return dynamic_cast<Model&>(*network_); }
  const std::vector<Parameter>& parameters() const { return network_->parameters().all(); }

  std::vector<double> parameter(const std::string& name) const;
  void set_parameter(const std::string& name, const std::vector<double>& values);
  /// Adds `by` to one element and refreshes the model.
  void move(const Parameter& p, int64_t i, double by);

  /// The mean token loss.
  double loss(const Batch& b);
  /// Computes the gradients with forward_backward, overwriting those of the previous call. Returns
  /// the mean loss.
  double differentiate(const Batch& b);
  std::vector<double> gradient(const std::string& name) const;
  /// The flat buffers.
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

/// Rounds the weights to bf16 values, so that two models with these weights differ only in
/// arithmetic.
void round_weights(Run& run);

/// norm: the norm of a, for relative errors. distance: the norm of a - b.
double norm(const std::vector<double>& a);
double distance(const std::vector<double>& a, const std::vector<double>& b);

/// Errors of the gradients. `all`: the distance of all gradients from the truth, relative to their
/// norm. `worst`: the largest of one tensor, relative to its own norm, or to 1 % of all if that is
/// larger.
struct GradientErrors {
  double all = 0, worst = 0;
  std::string name;  // the worst tensor

  GradientErrors(const Run& run, const Run& truth);
};

}  // namespace bamtrain::testing

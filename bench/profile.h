#pragma once
// A backend that times another: milliseconds per operation, compared with the rate of matrix
// products or of a copy. A copy is not a limit: operations that read more than they write may be
// faster.

#include <map>
#include <memory>
#include <string>

#include "ops/ops.h"

namespace bamtrain::bench {

/// The cost of one kind of operation so far.
struct OperationCost {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // of matrix products and of causal attention; 0 for all others
  double bytes = 0;  // of the operands, each once
};

/// The rates that a profile is compared with.
struct Limits {
  double products = 0;   // FLOP/s of matrix products in the activations' dtype
  double fp32 = 0;       // FLOP/s in fp32, the reference for attention
  double bandwidth = 0;  // bytes/s of a copy, read and written
};

class ProfiledBackend final : public Backend {
 public:
  explicit ProfiledBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  void reset() { costs_.clear(); }
  /// One line per operation, the most expensive first, then the time outside of operations.
  /// `seconds` is the time of all `steps` steps.
  std::string table(double seconds, int64_t steps, const Limits& limits) const;

  const char* name() const override { return inner_->name(); }
  Dtype parameter_dtype() const override { return inner_->parameter_dtype(); }
  void plan(Arena& arena, const WorkspaceShape& w) override { inner_->plan(arena, w); }
  MemorySource& memory() override { return inner_->memory(); }
  void upload(Tensor dst, const void* src) override;
  void download(void* dst, Tensor src) override;
  void synchronize() override { inner_->synchronize(); }
  std::unique_ptr<PeerLink> connect(const Peers& peers) override { return inner_->connect(peers); }
  /// Never records: every operation is timed.
  void run_captured(int64_t, const std::function<void()>& work) override { work(); }
  void zero(Tensor x) override;
  void add(Tensor dst, Tensor src) override;
  void convert(Tensor dst, Tensor src) override;
  void copy(Tensor dst, Tensor src) override;
  void sum(Tensor total, Tensor x) override;
  void squares(Tensor squares, Tensor x) override;
  void embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale, Tensor positions,
                         Tensor position_table) override;
  void embedding_backward(Tensor dtable, double scale, Tensor dposition_table, Tensor dout,
                          Tensor tokens, Tensor positions) override;
  void norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                    Tensor weight, Tensor bias, NormKind kind, double eps) override;
  void norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum, Tensor stats,
                     Tensor weight, NormKind kind) override;
  void linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) override;
  void linear_backward_input(Tensor dx, Tensor dy, Tensor weight) override;
  void linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) override;
  void activation_forward(Tensor out, Tensor in, MlpKind kind) override;
  void activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) override;
  void rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) override;
  void run(const MechanismOperation& operation) override;
  void attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) override;
  void attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                          const AttentionSaved& saved, const Attention& a) override;
  void attention_entropy(Tensor entropy, const Attention& a) override;
  void attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                            const Attention& a) override;
  void cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                     double scale) override;
  void argmax(Tensor places, Tensor x) override;
  void clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) override;
  void optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded, Tensor gradients,
                      Tensor factor, Tensor factors, const OptimizerHyperparameters& rule) override;

 private:
  std::unique_ptr<Backend> inner_;
  std::map<std::string, OperationCost> costs_;
};

/// The products over all visible pairs of query and key, one per head and element: 2 flops each.
/// Attention's forward pass takes 2 such products and the backward pass 5, one of which recomputes
/// the logits. flops_per_token (run/train.h) counts 6.
double attention_flops(Backend& backend, const Attention& a);

}  // namespace bamtrain::bench

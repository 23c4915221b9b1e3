#pragma once
// A backend that computes only priors and scales: what remains of a step is the code around the
// operations.

#include "ops/host_backend.h"

namespace bamtrain::testing {

class NullBackend : public HostBackend {
 public:
  const char* name() const override { return "null"; }
  Dtype parameter_dtype() const override { return Dtype::f32; }
  void zero(Tensor) override {}
  void add(Tensor, Tensor) override {}
  void convert(Tensor, Tensor) override {}
  void squares(Tensor, Tensor) override {}
  void embedding_forward(Tensor, Tensor, Tensor, double, Tensor, Tensor) override {}
  void embedding_backward(Tensor, double, Tensor, Tensor, Tensor, Tensor) override {}
  void norm_forward(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, NormKind,
                    double) override {}
  void norm_backward(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, NormKind) override {}
  void linear_forward(Tensor, Tensor, Tensor, Tensor) override {}
  void linear_backward_input(Tensor, Tensor, Tensor) override {}
  void linear_backward_weight(Tensor, Tensor, Tensor, Tensor) override {}
  void activation_forward(Tensor, Tensor, MlpKind) override {}
  void activation_backward(Tensor, Tensor, Tensor, MlpKind) override {}
  void rotate(Tensor, Tensor, Tensor, Tensor, bool) override {}
  void attention_forward(Tensor, const AttentionSaved&, const Attention&) override {}
  void attention_backward(const AttentionGradients&, Tensor, Tensor, const AttentionSaved&,
                          const Attention&) override {}
  void attention_entropy(Tensor, const Attention&) override {}
  void attention_statistics(Tensor, Tensor, const AttentionSaved&, const Attention&) override {}
  void cross_entropy(Tensor, Tensor, Tensor, Tensor, double) override {}
  void argmax(Tensor, Tensor) override {}
  void clip_factor(Tensor, Tensor, double, Tensor) override {}
  void optimizer_step(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                      const OptimizerHyperparameters&) override {}
};

}  // namespace bamtrain::testing

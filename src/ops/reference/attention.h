#pragma once
// Attention in fp64, one row at a time, and its adjoint. See Backend in ops/ops.h for the contract.

#include "ops/host_backend.h"

namespace bamtrain {

class ReferenceAttention : public HostBackend {
 public:
  void attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) override;
  void attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                          const AttentionSaved& saved, const Attention& a) override;
  void attention_entropy(Tensor entropy, const Attention& a) override;
  /// Of recomputed weights.
  void attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                            const Attention& a) override;
};

}  // namespace bamtrain

#pragma once
// The operations of mechanisms in fp64, as the mathematics is written: no formula, and no adjoint,
// is shared with those of the fast backends.

#include "ops/mechanism_ops.h"

namespace bamtrain {

class ReferenceMechanisms final : public MechanismOps {
 public:
  void table_forward(Tensor table, const PriorUse& prior, std::span<const Tensor> theta) override;
  void table_backward(std::span<const Tensor> dtheta, Tensor dtable, const PriorUse& prior,
                      std::span<const Tensor> theta) override;
  void scale_forward(Tensor scale, Tensor first_key, const ScaleUse& use,
                     std::span<const Tensor> theta) override;
  void scale_backward(std::span<const Tensor> dtheta, Tensor dscale, Tensor first_key,
                      const ScaleUse& use, std::span<const Tensor> theta) override;
  void adaptive_scale_forward(Tensor scale, Tensor gates, Tensor first_key, const ScaleUse& use,
                              std::span<const Tensor> bias) override;
  void adaptive_scale_backward(Tensor dgates, std::span<const Tensor> dbias, Tensor dscale,
                               Tensor gates, Tensor first_key, const ScaleUse& use,
                               std::span<const Tensor> bias) override;
  void entropy_scale(Tensor scale, Tensor entropy, int64_t first_head) override;
  void alpha_forward(Tensor alphas, Tensor theta) override;
  void alpha_backward(Tensor dtheta, Tensor dalpha, Tensor theta) override;
  void fire_forward(const FireTables& tables, std::span<const Tensor> theta, double L0) override;
  void fire_backward(std::span<const Tensor> dtheta, const FireBiasGradients& g, Tensor positions,
                     std::span<const Tensor> theta, double L0) override;
  void sums_forward(Tensor sums, Tensor gates, Tensor bias) override;
  void sums_backward(Tensor dgates, Tensor dbias, Tensor dsums, Tensor gates, Tensor bias) override;
};

}  // namespace bamtrain

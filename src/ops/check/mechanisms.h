#pragma once
// The mechanisms of the check backend: each operation on the tested backend and on the trusted one.

#include "ops/check/call.h"

namespace bamtrain {

class CheckedMechanisms final : public MechanismOps {
 public:
  CheckedMechanisms(Backend& tested, Backend& trusted, CheckLimits limits)
      : tested_(tested), trusted_(trusted), limits_(limits) {}

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

 private:
  CheckedCall call(const char* operation) { return {tested_, trusted_, limits_, operation}; }

  Backend &tested_, &trusted_;
  CheckLimits limits_;
};

}  // namespace bamtrain

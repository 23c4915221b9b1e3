#pragma once
// The operations of mechanisms on a GPU: tensors to launchers.

#include "ops/cuda/runtime.h"
#include "ops/ops.h"

namespace bamtrain::cuda {

class CudaMechanisms final : public MechanismOps {
 public:
  explicit CudaMechanisms(const WorkStream& stream) : stream_(stream) {}
  /// Registers scratch, as Backend::plan.
  void plan(Arena& arena, const WorkspaceShape& w);

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
  device::Stream stream() const { return stream_.get(); }

  const WorkStream& stream_;
  Tensor partial_;  // f64: of scales, sums of gates and fire
};

}  // namespace bamtrain::cuda

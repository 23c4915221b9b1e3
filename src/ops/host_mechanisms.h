#pragma once
// The operations of mechanisms on the CPU, in fp64 on parameters and gates of any dtype.

#include "ops/ops.h"

namespace bamtrain {

/// Nothing here is inline: the CPU backend is compiled for several instruction sets.
class HostMechanisms final : public MechanismOps {
 public:
  ~HostMechanisms() override;
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
  static constexpr int kMaxParameters = 8;  // of a mechanism

  struct Pointers {
    double* of[kMaxParameters] = {};
  };
  /// theta as doubles, in theta_.
  Pointers theta_values(std::span<const Tensor> theta) const;
  /// Zeros in `values`, and what was added there to the tensors of dtheta that are not empty.
  Pointers zeros(Tensor values, size_t count) const;
  void add_to(std::span<const Tensor> dtheta, const Pointers& values) const;

  Tensor table_;      // (H, T) f64
  Tensor by_length_;  // (H, T + 1) f64: of n visible keys
  Tensor theta_;      // (kMaxParameters, WorkspaceShape::mechanism_values) f64
  Tensor dtheta_;     // likewise
};

}  // namespace bamtrain

#pragma once
// The operations of mechanisms on the CPU, in fp64; parameters and gates have any dtype.

#include <span>

#include "ops/ops.h"

namespace bamtrain {

/// Scratch of these operations. Nothing here is inline: the CPU backend is compiled for several
/// instruction sets.
class HostScratch {
 public:
  /// As Backend::plan.
  void plan(Arena& arena, const WorkspaceShape& w);

  struct Pointers {
    double* of[TensorList::kMost] = {};
  };
  /// theta converted to doubles.
  Pointers theta_values(std::span<const Tensor> theta) const;
  /// zeros() returns cleared accumulators; add_to() adds them to the tensors of dtheta that are not
  /// empty.
  Pointers zeros(size_t count) const;
  void add_to(std::span<const Tensor> dtheta, const Pointers& values) const;

  Tensor table;      // (H, distances) f64
  Tensor by_length;  // (H, T + 1) f64: by number n of visible keys

 private:
  Pointers zeros(Tensor values, size_t count) const;

  Tensor theta_;   // (TensorList::kMost, WorkspaceShape::mechanism_values) f64
  Tensor dtheta_;  // likewise
};

/// Not inline, for the same reason.
class HostMechanisms final : public MechanismOps {
 public:
  ~HostMechanisms() override;
  /// Registers scratch, as Backend::plan does.
  void plan(Arena& arena, const WorkspaceShape& w);
  void run(const MechanismOperation& operation) override;

 private:
  HostScratch scratch_;
};

}  // namespace bamtrain

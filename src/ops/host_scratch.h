#pragma once
// What the operations of mechanisms on the CPU need: they compute in fp64, and parameters have any
// dtype.

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

}  // namespace bamtrain

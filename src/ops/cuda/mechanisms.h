#pragma once
// The operations of mechanisms on a GPU: each is what ops/cuda/NAME.cpp says, tensors to launchers.

#include "ops/cuda/runtime.h"
#include "ops/ops.h"

namespace bamtrain::cuda {

struct CudaWork {
  device::Stream stream;
  Tensor partial;  // f64: scratch, of which an operation takes its cuda_scratch
};

class CudaMechanisms final : public MechanismOps {
 public:
  explicit CudaMechanisms(const WorkStream& stream) : stream_(stream) {}
  /// Registers scratch, as Backend::plan.
  void plan(Arena& arena, const WorkspaceShape& w);
  void run(const MechanismOperation& operation) override;

 private:
  const WorkStream& stream_;
  Tensor partial_;
};

/// Floats of scratch of a bias's gradients.
template <class Gradients>
int64_t partial_of(const AttentionShape& s) {
  if constexpr (requires { Gradients::cuda_partial(s); }) return Gradients::cuda_partial(s);
  return 0;
}
/// The most that those of any bias take.
int64_t most_partial(const AttentionShape& s);

}  // namespace bamtrain::cuda

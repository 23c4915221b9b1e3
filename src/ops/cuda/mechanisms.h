#pragma once
// The operations of mechanisms on a GPU. ops/cuda/NAME.cpp passes each one's tensors to its
// launcher.

#include "ops/cuda/runtime.h"
#include "ops/ops.h"

namespace bamtrain::cuda {

struct CudaWork {
  device::Stream stream;
  Tensor partial;  // f64 scratch: an operation uses cuda_scratch doubles of it
};

class CudaMechanisms final : public MechanismOps {
 public:
  explicit CudaMechanisms(const WorkStream& stream) : stream_(stream) {}
  /// Registers scratch, as Backend::plan does.
  void plan(Arena& arena, const WorkspaceShape& w);
  void run(const MechanismOperation& operation) override;

 private:
  const WorkStream& stream_;
  Tensor partial_;
};

/// Floats of scratch that a bias's gradients need.
template <class Gradients>
int64_t partial_of(const AttentionShape& s) {
  if constexpr (requires { Gradients::cuda_partial(s); }) return Gradients::cuda_partial(s);
  return 0;
}
/// The maximum of partial_of over all biases.
int64_t most_partial(const AttentionShape& s);

}  // namespace bamtrain::cuda

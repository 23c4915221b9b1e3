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

/// The maximum of cuda_scratch over all operations.
int64_t most_scratch(const WorkspaceShape& w);

/// Floats of scratch that a bias's gradients need.
template <class Gradients>
int64_t partial_of(const AttentionShape& s) {
  if constexpr (requires { Gradients::cuda_partial(s); }) return Gradients::cuda_partial(s);
  return 0;
}
/// The maximum of partial_of over all biases.
int64_t most_partial(const AttentionShape& s);
/// Throws Error (config) for shapes that the kernels of a bias do not support.
void check_biases(const WorkspaceShape& w);

}  // namespace bamtrain::cuda

#include "ops/mechanisms/alpha.h"

#include "kernels/alpha.h"
#include "ops/cuda/arguments.h"
#include "ops/cuda/mechanisms.h"

namespace bamtrain {

using namespace cuda;

void AlphaForward::on_cuda(const cuda::CudaWork& work) const {
  check(kernels::alpha_forward(f32(alphas), f32(theta), alphas.size(), work.stream), kName);
}

void AlphaBackward::on_cuda(const cuda::CudaWork& work) const {
  check(kernels::alpha_backward(f32(dtheta), f32(dalpha), f32(theta), dalpha.shape[0],
                                dalpha.shape[1], dalpha.shape[2], work.stream),
        kName);
}

}  // namespace bamtrain

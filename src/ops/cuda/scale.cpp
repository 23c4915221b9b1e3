#include "ops/mechanisms/scale.h"

#include "kernels/attention_entropy.h"
#include "kernels/scale_rows.h"
#include "ops/cuda/arguments.h"
#include "ops/cuda/mechanisms.h"

namespace bamtrain {

using namespace cuda;

namespace {

kernels::ScaleRows scale_of(const ScaleUse& use, const Tensor& scale, const Tensor& first_key,
                            const Tensor& last_key, std::span<const Tensor> theta) {
  require(theta.size() <= kMaxScaleScalars, "at most two parameters of a scale");
  kernels::ScaleRows r;
  r.name = use.info.name.c_str();
  r.first_head = use.first_head;
  r.constants = use.constants;
  for (size_t n = 0; n < theta.size(); ++n) r.theta[n] = f32(theta[n]);
  r.first_key = i32(first_key);
  r.last_key = i32(last_key);
  r.B = scale.shape[0];
  r.H = scale.shape[1];
  r.T = scale.shape[2];
  return r;
}

}  // namespace

void ScaleForward::on_cuda(const cuda::CudaWork& work) const {
  check(kernels::scale_forward(f32(scale), scale_of(use, scale, first_key, last_key, theta),
                               work.stream),
        kName);
}

void ScaleBackward::on_cuda(const cuda::CudaWork& work) const {
  kernels::ScaleGradients g;
  for (size_t p = 0; p < dtheta.size(); ++p) g.dtheta[p] = f32(dtheta[p]);
  g.dscale = f32(dscale);
  g.scratch = work.partial.ptr<double>();
  check(kernels::scale_backward(g, scale_of(use, dscale, first_key, last_key, theta), work.stream),
        kName);
}

int64_t ScaleBackward::cuda_scratch(const WorkspaceShape& w) {
  return kernels::scale_backward_scratch(w.B, w.H, w.T);
}

void EntropyScale::on_cuda(const cuda::CudaWork& work) const {
  check(kernels::entropy_scale(f32(scale), f32(entropy), as_int(scale.shape[0]),
                               as_int(scale.shape[1]), as_int(scale.shape[2]), as_int(first_head),
                               work.stream),
        kName);
}

}  // namespace bamtrain

#include "ops/mechanisms/transformer_xl.h"

#include "ops/cuda/arguments.h"

namespace bamtrain {

using namespace cuda;

void RelativeBias::on_cuda(kernels::BiasInputs& in) const {
  in.relative = {f32(r) + (in.causal ? 0 : (r.shape[0] - 1) / 2 * r.stride[0]), f32(u), f32(w)};
}

void RelativeBiasGradients::on_cuda(kernels::BiasOutputs& out) const {
  out.dr = f32(dr) + (out.causal ? 0 : (dr.shape[0] - 1) / 2 * dr.stride[0]);
  out.du = f32(du);
  out.dw = f32(dw);
}

}  // namespace bamtrain

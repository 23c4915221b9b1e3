#include "ops/attention.h"
#include "ops/cuda/arguments.h"

namespace bamtrain {

using namespace cuda;

void HeadMix::on_cuda(kernels::BiasInputs& in, MixForm form) const {
  in.mix = {f32(w1), f32(c1), f32(w2), f32(c2), as_int(hidden()), form};
}

void HeadMixGradients::on_cuda(kernels::BiasOutputs& out) const {
  out.dmix = {f32(w1), f32(c1), f32(w2), f32(c2)};
}

}  // namespace bamtrain

#include "ops/mechanisms/cope.h"

#include "ops/cuda/arguments.h"

namespace bamtrain {

using namespace cuda;

void ContextualBias::on_cuda(kernels::BiasInputs& in) const {
  in.contextual = {f32(positions), as_int(positions.shape[1])};
}

void ContextualBiasGradients::on_cuda(kernels::BiasOutputs& out) const {
  out.dpositions = f32(dpositions);
}

}  // namespace bamtrain

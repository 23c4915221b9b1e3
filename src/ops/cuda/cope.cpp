#include "ops/mechanisms/cope.h"

#include "ops/cuda/arguments.h"
#include "ops/ops.h"

namespace bamtrain {

using namespace cuda;

void ContextualBias::on_cuda(kernels::BiasInputs& in) const {
  in.contextual = {f32(positions), as_int(positions.shape[1])};
}

void ContextualBiasGradients::check_on_cuda(const WorkspaceShape& w) {
  require_on_cuda(w.content_columns() <= kernels::kMostPositions,
                  "model.attention.prior (\"positions\" of cope)", "at most 1,024",
                  w.content_columns());
}

void ContextualBiasGradients::on_cuda(kernels::BiasOutputs& out) const {
  out.dpositions = f32(dpositions);
}

}  // namespace bamtrain

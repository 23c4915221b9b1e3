#include "ops/mechanisms/cope.h"

#include "core/error.h"

namespace bamtrain {

void ContextualBias::on_cuda(kernels::BiasInputs&) const {
  require(kOnCuda, "a bias that kernels have a stage for");
}
void ContextualBiasGradients::on_cuda(kernels::BiasOutputs&) const {
  require(ContextualBias::kOnCuda, "a bias that kernels have a stage for");
}

}  // namespace bamtrain

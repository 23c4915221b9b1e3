#include "ops/mechanisms/transformer_xl.h"

#include "core/error.h"

namespace bamtrain {

void RelativeBias::on_cuda(kernels::BiasInputs&) const {
  require(kOnCuda, "a bias that kernels have a stage for");
}
void RelativeBiasGradients::on_cuda(kernels::BiasOutputs&) const {
  require(RelativeBias::kOnCuda, "a bias that kernels have a stage for");
}

}  // namespace bamtrain

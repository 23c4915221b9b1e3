#include "ops/mechanisms/tokens.h"

#include "ops/cuda/arguments.h"

namespace bamtrain {

using namespace cuda;

void TokenBias::on_cuda(kernels::BiasInputs& in) const {
  in.numbers = numbers.ptr<double>();
  in.formula = formula;
}

void TokenBiasGradients::on_cuda(kernels::BiasOutputs& g) const { g.dnumbers = f32(dnumbers); }

}  // namespace bamtrain

#include "ops/mechanisms/tokens.h"

#include "ops/cuda/arguments.h"

namespace bamtrain {

using namespace cuda;

void TokenBias::on_cuda(kernels::BiasInputs& in) const {
  require(numbers.stride[2] == 1 &&
              (numbers.shape[0] == 1 || numbers.stride[0] == numbers.shape[1] * numbers.stride[1]),
          "numbers whose heads follow each other");
  in.numbers = numbers.ptr<double>();
  in.numbers_head = numbers.stride[1];
  in.formula = formula;
}

void TokenBiasGradients::on_cuda(kernels::BiasOutputs& g) const { g.dnumbers = f32(dnumbers); }

}  // namespace bamtrain

// The bf16 error of gate and bias gradients in a whole model on the CPU.

#include "half_precision.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("gradients of gates and biases in bf16 stay near fp32's as sequences grow") {
  for (Dtype t : with_products({Dtype::bf16})) {
    for (const int64_t T : {64, 256, 1024, 2048}) {
      check_half_precision(T,
                           [&](const ModelConfig& c) { return std::make_unique<Run>(c, t, 1, T); });
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

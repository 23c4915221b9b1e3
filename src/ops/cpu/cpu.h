#pragma once
// The CPU backend: f32 or bf16 activations, f32 parameters, all threads, bits that do not depend on
// their number.

#include <memory>

#include "ops/ops.h"

namespace bamtrain {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace bamtrain

#pragma once
// The reference backend: every operation in fp64, one row and one logit at a time, in the order of
// the mathematics. Finite differences and the fast backends are tested against it. It is
// single-threaded and slow by design.

#include <memory>

#include "ops/ops.h"

namespace bamtrain {

std::unique_ptr<Backend> make_reference_backend();

}  // namespace bamtrain

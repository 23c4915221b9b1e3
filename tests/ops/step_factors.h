#pragma once
// The factors of an optimizer step in a machine's memory.

#include <vector>

#include "compare.h"
#include "ops/optimizer_math.h"

namespace bamtrain::testing {

inline Memory step_factors(Machine& machine, const OptimizerStep& step) {
  std::vector<double> factors(kOptimizerFactors);
  write_factors(optimizer_factors(step), factors.data());
  return machine.memory({Role::wide, {kOptimizerFactors}, factors});
}

}  // namespace bamtrain::testing

#pragma once
// The operations of mechanisms: from parameters and gates to what attention reads, and their
// adjoints. The operations of a layer are in ops/ops.h. Each operation is a value: see
// ops/mechanisms/operation.h.

#include "ops/mechanisms/all.h"

namespace bamtrain {

class MechanismOps {
 public:
  virtual ~MechanismOps() = default;
  virtual void run(const MechanismOperation& operation) = 0;
};

}  // namespace bamtrain

#pragma once
// The operations of mechanisms, beside those of a layer in ops/ops.h: from parameters and gates to
// what attention reads, and back. Each is a value: see ops/mechanisms/operation.h.

#include "ops/mechanisms/all.h"

namespace bamtrain {

class MechanismOps {
 public:
  virtual ~MechanismOps() = default;
  virtual void run(const MechanismOperation& operation) = 0;
};

}  // namespace bamtrain

#pragma once
// The operations of mechanisms in fp64, as the mathematics is written. No formula and no adjoint is
// shared with the fast backends.

#include "ops/mechanism_ops.h"

namespace bamtrain {

class ReferenceMechanisms final : public MechanismOps {
 public:
  void run(const MechanismOperation& operation) override {
    std::visit([](const auto& of) { of.in_reference(); }, operation);
  }
};

}  // namespace bamtrain

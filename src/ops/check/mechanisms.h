#pragma once
// The mechanisms of the check backend: each operation runs on the tested and on the trusted
// backend.

#include "ops/check/call.h"

namespace bamtrain {

class CheckedMechanisms final : public MechanismOps {
 public:
  CheckedMechanisms(Backend& tested, Backend& trusted, CheckLimits limits)
      : tested_(tested), trusted_(trusted), limits_(limits) {}

  void run(const MechanismOperation& operation) override {
    std::visit([this](const auto& own) { check(own); }, operation);
  }

 private:
  template <class Operation>
  void check(const Operation& own) {
    CheckedCall call(tested_, trusted_, limits_, Operation::kName);
    Operation mirrored = own;
    for_tensors(mirrored, [&call](const char* name, TensorUse use, Tensor& t) {
      t = call.mirror(use, name, t);
    });
    call.run([&](Backend& b, bool of_caller) { b.mechanisms().run(of_caller ? own : mirrored); });
  }

  Backend &tested_, &trusted_;
  CheckLimits limits_;
};

}  // namespace bamtrain

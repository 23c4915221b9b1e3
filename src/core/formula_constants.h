#pragma once

namespace bamtrain {

/// What a mechanism's formula reads of its options, in an order that is its own.
struct FormulaConstants {
  double of[2] = {};
};

}  // namespace bamtrain

#pragma once

namespace bamtrain {

/// The options that a mechanism's formula reads, in the mechanism's own order.
struct FormulaConstants {
  double of[2] = {};
};

}  // namespace bamtrain

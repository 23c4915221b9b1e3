#pragma once
// One-letter names of roles, for lists in tests of operations.

#include "compare.h"

namespace bamtrain::testing {

constexpr Role A = Role::activation, P = Role::parameter;

}  // namespace bamtrain::testing

#pragma once
// Roles by one letter, where tests of operations list what has them.

#include "compare.h"

namespace bamtrain::testing {

constexpr Role A = Role::activation, P = Role::parameter;

}  // namespace bamtrain::testing

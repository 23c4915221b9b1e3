#pragma once
// The rules of scales/gated_rows.h as the mathematics is written, each in NAME.cpp of its
// mechanism.

#include "ops/reference/dual.h"
#include "scales/gated_rows.h"

namespace bamtrain::reference {

/// The number of a row with `keys` visible keys, from its gates u.
dual::Dual number_of(const Adaptive& rule, const dual::Dual* u, int64_t keys);

}  // namespace bamtrain::reference

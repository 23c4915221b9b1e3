#pragma once
// The rules of scales/gated_rows.h as the mathematics is written, each in NAME.cpp of its
// mechanism.

#include "ops/reference/dual.h"
#include "scales/gated_rows.h"

namespace bamtrain::reference {

/// The number of a row that sees `keys` keys, from its gates u.
#define BAMTRAIN_DECLARATION(name, type) \
  dual::Dual number_of(const type& rule, const dual::Dual* u, int64_t keys);
BAMTRAIN_RULES(BAMTRAIN_DECLARATION)
#undef BAMTRAIN_DECLARATION

}  // namespace bamtrain::reference

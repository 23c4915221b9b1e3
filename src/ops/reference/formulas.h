#pragma once
// The formulas of priors/formula.h as the mathematics is written, each in NAME.cpp of its family.

#include "ops/reference/dual.h"
#include "priors/formula.h"

namespace bamtrain::reference {

/// b of a row's number, a key's and their distance.
#define BAMTRAIN_DECLARATION(form, type) \
  dual::Dual formula_of(type, dual::Dual row, dual::Dual key, double d);
BAMTRAIN_FORMULAS(BAMTRAIN_DECLARATION)
#undef BAMTRAIN_DECLARATION

}  // namespace bamtrain::reference

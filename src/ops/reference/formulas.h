#pragma once
// The formulas of priors/formula.h as the mathematics is written, each in NAME.cpp of its family.

#include "ops/reference/dual.h"
#include "priors/formula.h"

namespace bamtrain::reference {

/// b from the row's number, the key's number and their distance d.
dual::Dual formula_of(Difference, dual::Dual row, dual::Dual key, double d);
dual::Dual formula_of(LogSquare, dual::Dual row, dual::Dual key, double d);

}  // namespace bamtrain::reference

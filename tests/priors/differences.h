#pragma once
// Finite differences of priors of distance and of logit scales, one number at a time.

#include <cstdint>
#include <functional>
#include <vector>

#include "priors/prior.h"
#include "scales/scale.h"

namespace bamtrain::testing {

/// A mechanism's parameters, in the order of its declaration.
struct Theta {
  std::vector<std::vector<double>> values;

  std::vector<const double*> pointers() const;
};

/// Compares derivatives of numbers with respect to every element of theta with central differences
/// of each number. `adjoint` adds those of a number to gradients. Errors are relative to the sizes
/// of number and derivative. Checks that the largest is within kDerivativeTolerance, and would not
/// be with derivatives that are off by 1 %. Nothing may be infinite or NaN.
///
/// With h = 1e-6, the truncation error is h^2 / 6 times the third derivative, and the rounding
/// error is 1e-10 of the number. Third derivatives stay below 1e5 of it.
void check_derivatives(const Theta& theta,
                       const std::function<std::vector<double>(const Theta&)>& numbers,
                       const std::function<void(size_t, double* const*)>& adjoint);
constexpr double kDerivativeTolerance = 1e-7;

/// The same for every entry of a prior's table.
void check_table_derivatives(const PriorInfo& prior, const Theta& theta, const TableShape& shape);

/// The constants that the scale's formula takes from these options.
FormulaConstants constants_of(const ScaleInfo& scale, const Options& options, int64_t heads);

/// One set of options for each formula and gain that a prior's options select; the defaults come
/// first.
std::vector<Options> every_form(const PriorInfo& prior);

/// The model shape that the tests pass to mechanisms.
ModelShape shape_of(int64_t heads);
/// Values near 0, or near the parameter's minimum, where every prior is smooth; one per element of
/// each parameter.
Theta random_theta(const MechanismParameters& parameters);

}  // namespace bamtrain::testing

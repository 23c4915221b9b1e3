#pragma once
// Finite differences of priors of distance and of logit scales, one number at a time.

#include <cstdint>
#include <vector>

#include "priors/prior.h"
#include "scales/scale.h"

namespace bamtrain::testing {

/// A mechanism's parameters, in the order of its declaration.
struct Theta {
  std::vector<std::vector<double>> values;

  std::vector<const double*> pointers() const;
};

/// Compares the derivative that `adjoint` returns for a single table entry with a central
/// difference of that entry, for every parameter, head and distance. Returns the largest error
/// relative to the sizes of entry and derivative, or infinity if anything is not finite.
///
/// With h = 1e-6, the truncation error is h^2 / 6 times the third derivative, and the rounding
/// error is 1e-10 of the entry. Third derivatives stay below 1e5 of it. So a correct adjoint is
/// within kTableTolerance, and one that is off by 1 % is far outside.
double table_difference_error(const PriorInfo& prior, const Theta& theta, const TableShape& shape);

/// The same for a scale's value, at every head and number of visible keys up to T.
double scale_difference_error(const ScaleInfo& scale, const FormulaConstants& constants,
                              const Theta& theta, int64_t H, int64_t T);

/// The constants that the scale's formula takes from these options.
FormulaConstants constants_of(const ScaleInfo& scale, const Options& options, int64_t heads);

constexpr double kTableTolerance = 1e-7;

/// One set of options for each formula and gain that a prior's options select; the defaults come
/// first.
std::vector<Options> every_form(const PriorInfo& prior);

/// The model shape that the tests pass to mechanisms.
ModelShape shape_of(int64_t heads);
/// Values near 0, or near the parameter's minimum, where every prior is smooth; one per element of
/// each parameter.
Theta random_theta(const MechanismParameters& parameters);

}  // namespace bamtrain::testing

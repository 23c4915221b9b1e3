#pragma once
// Finite differences of priors of distance and of logit scales, one number at a time.

#include <cstdint>
#include <vector>

#include "priors/prior.h"
#include "scales/scale.h"

namespace bamtrain::testing {

/// Parameters of a mechanism, in the order of its declaration.
struct Theta {
  std::vector<std::vector<double>> values;

  std::vector<const double*> pointers() const;
};

/// For every parameter, head and distance the derivative that `adjoint` returns for that one
/// entry of the table, against a central difference of the entry: the largest error relative to the
/// sizes of entry and derivative.
///
/// With h = 1e-6 the truncation is h^2 / 6 times the third derivative and the rounding 1e-10 of the
/// entry; third derivatives stay below 1e5 of it, so that a correct adjoint is within
/// kTableTolerance and one that is off by 1 % is far outside. Infinity where anything is not
/// finite.
double table_difference_error(const PriorInfo& prior, const Theta& theta, const TableShape& shape);

/// Likewise for the value of a scale at every head and number of visible keys up to T.
double scale_difference_error(const ScaleInfo& scale, const FormulaConstants& constants,
                              const Theta& theta, int64_t H, int64_t T);

/// What the scale's formula reads of these options.
FormulaConstants constants_of(const ScaleInfo& scale, const Options& options, int64_t heads);

constexpr double kTableTolerance = 1e-7;

/// Options for each of the formulas and gains among which a prior's options choose: the defaults
/// first.
std::vector<Options> every_form(const PriorInfo& prior);

/// What the tests tell a mechanism of the model.
ModelShape shape_of(int64_t heads);
/// Values near 0, or near the parameter's minimum, where every prior is smooth; one per element of
/// each parameter.
Theta random_theta(const MechanismParameters& parameters);

}  // namespace bamtrain::testing

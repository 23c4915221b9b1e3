#pragma once
// Means over seeds, and whether two of them differ.

#include <optional>
#include <span>

namespace bamtrain {

/// Of numbers of different seeds.
struct SeedSample {
  int count = 0;
  double mean = 0;
  std::optional<double> standard_deviation;  // standard, n - 1; none of a single one
};

/// REQUIRES: at least one value.
SeedSample sample_of(std::span<const double> values);

/// The two-sided p-value of Welch's t-test (1947): whether the means of two normal populations,
/// whose variances may differ, are equal; degrees of freedom after Satterthwaite. None where a
/// sample has a single value, or neither has a spread.
std::optional<double> welch_p(const SeedSample& a, const SeedSample& b);

/// P(|t| >= `t`) of Student's distribution with `freedom` > 0 degrees of freedom.
double student_two_sided(double t, double freedom);

}  // namespace bamtrain

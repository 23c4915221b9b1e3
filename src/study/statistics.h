#pragma once
// Means over seeds, and whether two of them differ.

#include <optional>
#include <span>

namespace bamtrain {

/// Statistics of one number over seeds.
struct SeedSample {
  int count = 0;
  double mean = 0;
  std::optional<double> standard_deviation;  // with n - 1; nullopt for a single value
};

/// REQUIRES: at least one value.
SeedSample sample_of(std::span<const double> values);

/// The two-sided p-value of Welch's t-test (1947) for equal means of two normal populations with
/// possibly different variances; degrees of freedom after Satterthwaite. Returns nullopt if a
/// sample has a single value, or both have zero variance.
std::optional<double> welch_p(const SeedSample& a, const SeedSample& b);

}  // namespace bamtrain

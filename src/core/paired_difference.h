#pragma once
// Whether two means differ that were measured on the same targets, or in runs of the same seeds.
// What both have in common, an easy document or a lucky seed, cancels in the difference. So its
// standard error is usually much smaller than those of the two means.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/clustered_mean.h"

namespace bamtrain {

struct PairedDifference {
  double value = 0;             // the first minus the second
  std::optional<double> error;  // standard error; nullopt: unknown (a single pair, or no fp64)
  std::optional<double> p;      // two-sided; nullopt if the error is unknown, or 0 up to rounding
  int64_t pairs = 0;            // documents or seeds
};

/// The difference of two clustered means of the same values: of losses, by document. With
/// D_c = A_c - B_c, the difference of the sums of cluster c, the error is that of the clustered
/// mean of the D_c. t = value / error has G - 1 degrees of freedom for G clusters. REQUIRES: the
/// n-th clusters have equal counts, and at least one value.
PairedDifference paired_difference(std::span<const Cluster> a, std::span<const Cluster> b);

/// The difference of exp of the two means (of perplexities, if these are losses), with its error by
/// the delta method: that of the clusters' exp(a) A_c - exp(b) B_c, with a and b the means. p is
/// that of the means' difference, since both are 0 together.
PairedDifference paired_difference_of_exp(std::span<const Cluster> a, std::span<const Cluster> b);

/// The paired t-test of values in pairs: the mean of their differences, with n - 1 degrees of
/// freedom. REQUIRES: as many `a` as `b`, at least one.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

/// "+1.230 ± 0.080": a difference and its error, if known, to two digits of the error and at least
/// two decimals.
std::string difference_text(double value, const std::optional<double>& error,
                            const std::string& plus_minus = " ± ");

}  // namespace bamtrain

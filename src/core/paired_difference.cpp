#include "core/paired_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/student_t.h"

namespace bamtrain {

namespace {

// Relative to the two means: equal differences have rounding errors of this size.
constexpr double kRoundingOfSums = 1e-12;

/// The clustered mean of factor_a A_c - factor_b B_c.
ClusteredMean mean_difference(std::span<const Cluster> a, double factor_a,
                              std::span<const Cluster> b, double factor_b) {
  require(a.size() == b.size(), "clusters in pairs");
  std::vector<Cluster> differences;
  for (size_t c = 0; c < a.size(); ++c) {
    require(a[c].count == b[c].count, "clusters of equal counts");
    differences.push_back({factor_a * a[c].sum - factor_b * b[c].sum, a[c].count});
  }
  return clustered_mean(differences);
}

}  // namespace

PairedDifference paired_difference(std::span<const Cluster> a, std::span<const Cluster> b) {
  ClusteredMean m = mean_difference(a, 1, b, 1);
  if (m.error && !std::isfinite(*m.error)) m.error = std::nullopt;
  PairedDifference out = {m.mean, m.error, std::nullopt, m.clusters};
  const double least = kRoundingOfSums *
                       std::max(std::abs(clustered_mean(a).mean), std::abs(clustered_mean(b).mean));
  if (m.error && *m.error > least) {
    out.p = student_two_sided(m.mean / *m.error, static_cast<double>(m.clusters - 1));
  }
  return out;
}

PairedDifference paired_difference_of_exp(std::span<const Cluster> a, std::span<const Cluster> b) {
  PairedDifference out = paired_difference(a, b);
  const double exp_a = std::exp(clustered_mean(a).mean), exp_b = std::exp(clustered_mean(b).mean);
  out.value = exp_a - exp_b;
  out.error = mean_difference(a, exp_a, b, exp_b).error;
  if (!std::isfinite(out.value) || !std::isfinite(out.error.value_or(0))) out.error = std::nullopt;
  return out;
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b) {
  std::vector<Cluster> first, second;
  for (const double v : a) first.push_back({v, 1});
  for (const double v : b) second.push_back({v, 1});
  return paired_difference(std::span<const Cluster>(first), std::span<const Cluster>(second));
}

std::string difference_text(double value, const std::optional<double>& error,
                            const std::string& plus_minus) {
  constexpr int kLeast = 2, kMost = 6;  // decimals
  if (!error) return fmt::format("{:+.{}f}", value, kLeast);
  const int digits = *error > 0 ? 1 - static_cast<int>(std::floor(std::log10(*error))) : kLeast;
  const int decimals = std::clamp(digits, kLeast, kMost);
  return fmt::format("{:+.{}f}{}{:.{}f}", value, decimals, plus_minus, *error, decimals);
}

}  // namespace bamtrain

#pragma once
// Holm's correction for testing several hypotheses at once.

#include <optional>
#include <span>
#include <vector>

namespace bamtrain {

/// Below this corrected p a difference counts as significant, and tables print it in bold.
inline constexpr double kSignificance = 0.05;

/// The p-values corrected by Holm's step-down procedure (1979), each for the family of all that are
/// present. With m of them in ascending order, the i-th becomes max_{j <= i} min(1, (m - j + 1)
/// p_j). Rejecting where the result is below a keeps the probability of any false rejection below
/// a, however the tests depend on each other. nullopt remains nullopt.
std::vector<std::optional<double>> holm(std::span<const std::optional<double>> p);

}  // namespace bamtrain

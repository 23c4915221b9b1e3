#include "core/clustered_mean.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace bamtrain {

std::optional<double> ClusteredMean::error_of_exp() const {
  return error ? std::optional<double>(std::exp(mean) * *error) : std::nullopt;
}

ClusteredMean clustered_mean(std::span<const Cluster> clusters) {
  ClusteredMean out;
  double sum = 0;
  for (const Cluster& c : clusters) {
    sum += c.sum;
    out.count += c.count;
    out.clusters += c.count > 0;
  }
  require(out.count > 0, "clusters with values");
  const auto N = static_cast<double>(out.count), G = static_cast<double>(out.clusters);
  out.mean = sum / N;
  if (out.clusters < 2) return out;
  double squares = 0;
  for (const Cluster& c : clusters) {
    const double deviation = c.sum - out.mean * static_cast<double>(c.count);
    squares += deviation * deviation;
  }
  out.error = std::sqrt(G / (G - 1) * squares) / N;
  return out;
}

std::string plus_minus(std::optional<double> error, int decimals) {
  return error ? fmt::format(" ± {:.{}f}", *error, decimals) : "";
}

}  // namespace bamtrain

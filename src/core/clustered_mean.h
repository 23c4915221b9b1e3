#pragma once
// The mean of values that come in clusters, and its standard error: the losses of a text's tokens,
// whose clusters are its documents. Values of one cluster may depend on each other in any way;
// clusters are taken to be drawn independently. What other seeds of a training would have given is
// no part of the error.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace bamtrain {

struct Cluster {
  double sum = 0;
  int64_t count = 0;  // of values

  void add(double value) {
    sum += value;
    ++count;
  }
};

struct ClusteredMean {
  double mean = 0;
  std::optional<double> error;  // standard; none: unknown, of a single cluster
  int64_t count = 0;            // of values
  int64_t clusters = 0;         // that have values

  /// The standard error of exp(mean), which of losses is the perplexity, by the delta method.
  std::optional<double> error_of_exp() const;
};

/// With S_c the sum of a cluster's n_c values, N the number of all values and G clusters,
///
///     m = sum_c S_c / N,    se^2 = G / (G - 1) * sum_c (S_c - m n_c)^2 / N^2:
///
/// the linearised variance of a ratio whose denominator is random too (Cochran, Sampling
/// Techniques, 3rd edition, 1977, chapter 6), which is the cluster-robust variance of a regression
/// on a constant (Cameron and Miller, A Practitioner's Guide to Cluster-Robust Inference, J. Human
/// Resources 50, 2015). With few clusters it is too small on average. Sums are in fp64, in the
/// order of `clusters`; those without values do not count. REQUIRES: there is a value.
ClusteredMean clustered_mean(std::span<const Cluster> clusters);

/// " +- 0.0123", to follow a mean in a line of text; "" where the error is unknown.
std::string plus_minus(std::optional<double> error, int decimals);

}  // namespace bamtrain

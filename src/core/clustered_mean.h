#pragma once
// The mean of values that come in clusters, and its standard error: the losses of tokens, clustered
// by document. Values of one cluster may depend on each other in any way; clusters are assumed to
// be drawn independently. The error does not include seed variance.

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
  std::optional<double> error;  // standard error; nullopt (unknown) for a single cluster
  int64_t count = 0;            // of values
  int64_t clusters = 0;         // with at least one value

  /// The standard error of exp(mean) by the delta method; for losses, exp(mean) is the perplexity.
  std::optional<double> error_of_exp() const;
};

/// With S_c the sum of a cluster's n_c values, N the number of all values and G clusters:
///
///     m = sum_c S_c / N,    se^2 = G / (G - 1) * sum_c (S_c - m n_c)^2 / N^2
///
/// This is the linearized variance of a ratio with a random denominator (Cochran, Sampling
/// Techniques, 3rd edition, 1977, chapter 6). It equals the cluster-robust variance of a regression
/// on a constant (Cameron and Miller, A Practitioner's Guide to Cluster-Robust Inference, J. Human
/// Resources 50, 2015). With few clusters it is too small on average. Sums are in fp64, in the
/// order of `clusters`; clusters without values do not count. REQUIRES: at least one value.
ClusteredMean clustered_mean(std::span<const Cluster> clusters);

/// " ± 0.0123", to append to a mean in a line of text; "" if the error is unknown.
std::string plus_minus(std::optional<double> error, int decimals);

}  // namespace bamtrain

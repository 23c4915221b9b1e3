#pragma once
// Absolute positions added to the token embedding: fixed sinusoids (Vaswani et al. 2017) and a
// learned table (DAPE, table 2).

#include <cmath>

#include "priors/prior.h"

namespace bamtrain {

/// Sine on even and cosine on odd channels. `paired`: the same frequency for both of a pair, as in
/// the original; else each channel has its own (BAM's code).
inline double sinusoidal_embedding(bool paired, int64_t position, int64_t c, int64_t C) {
  const int64_t exponent = paired ? c - c % 2 : c;
  const double angle = static_cast<double>(position) *
                       pow(10000.0, -static_cast<double>(exponent) / static_cast<double>(C));
  return c % 2 == 0 ? sin(angle) : cos(angle);
}

/// Standard deviation of the learned table's initial values.
constexpr double kLearnedEmbeddingStd = 0.02;

}  // namespace bamtrain

#pragma once
// HeadMix in fp64 at one (i, j), as the mathematics is written.

#include <vector>

#include "ops/attention.h"

namespace bamtrain {

/// Numbers of all heads, (H) each.
using OfHeads = std::vector<double>;

/// The biases that take the place of B, from the scores x.
OfHeads reference_mix(const HeadMix& mix, const OfHeads& x, const OfHeads& B);

struct MixAdjoint {
  OfHeads dx, dB;
};
/// At db, the gradient with respect to the biases; adds to those of the network.
MixAdjoint reference_mix_adjoint(const HeadMixGradients& g, const HeadMix& mix, const OfHeads& x,
                                 const OfHeads& B, const OfHeads& db);

}  // namespace bamtrain

#pragma once
// HeadMix in fp64 at one (i, j), as the mathematics is written.

#include <vector>

#include "ops/attention.h"

namespace bamtrain {

/// One number per head, (H).
using OfHeads = std::vector<double>;

/// The biases that replace B, from the scores x.
OfHeads reference_mix(const HeadMix& mix, const OfHeads& x, const OfHeads& B);

struct MixAdjoint {
  OfHeads dx, dB;
};
/// The adjoint at db, the gradient with respect to the biases. Adds to the gradients of the
/// network.
MixAdjoint reference_mix_adjoint(const HeadMixGradients& g, const HeadMix& mix, const OfHeads& x,
                                 const OfHeads& B, const OfHeads& db);

}  // namespace bamtrain

#pragma once
// Absolute positions added to the token embedding: fixed sinusoids (Vaswani et al. 2017).

#include <cstdint>

namespace bamtrain {

/// Sine on even and cosine on odd channels. `paired`: both channels of a pair share a frequency, as
/// in the original. Otherwise each channel has its own (BAM's code).
double sinusoidal_embedding(bool paired, int64_t position, int64_t c, int64_t C);

}  // namespace bamtrain

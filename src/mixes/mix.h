#pragma once
// The seam between a mix of heads and everything else: at each (i, j) a function of all heads'
// content scores x and of the biases B of the layer's prior makes what is added to each head's
// logit, beside or in place of its B. A mix is a header in this folder (formula and constants), a
// .cpp beside it that declares the rest (options, parameters, initial values), and a line in
// registry.cpp. It stands beside the prior, which stays what it is without one: tables, windows,
// rotations and the names of its parameters. Attention reads a mix as HeadMix of ops/attention.h;
// x is not multiplied by the logit scale.

#include <cstdint>
#include <string>
#include <vector>

#include "core/host_device.h"
#include "core/mechanism.h"

namespace bamtrain {

/// What the network f reads, and the bias b that takes the place of B:
enum class MixForm : uint8_t {
  concat,           // b = f([x; B])
  concat_residual,  // b = B + f([x; B])
  add_residual,     // b = B + f(x + B). Without a bias this is the form of all
  bias_only,        // b = B + f(B)
};

/// Numbers that f reads, of H heads.
BAMTRAIN_HD constexpr int64_t mix_inputs(MixForm form, int64_t H) {
  return form == MixForm::concat || form == MixForm::concat_residual ? 2 * H : H;
}
/// Whether B itself is part of b.
BAMTRAIN_HD constexpr bool keeps_bias(MixForm form) { return form != MixForm::concat; }

/// One mix, type-erased. Its parameters(): those of HeadMix, in its order, of a shape that says
/// whether the layer's prior adds a bias (ModelShape::biased).
struct MixInfo : MechanismInfo {
  /// Of a layer whose prior adds a bias; the others' is add_residual.
  MixForm (*form)(const Options&) = nullptr;
  /// Priors that it goes with.
  std::vector<std::string> bases = {};
};

}  // namespace bamtrain

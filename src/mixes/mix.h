#pragma once
// The interface of a mix of heads. At each (i, j), a function of all heads' content scores x and of
// the biases B of the layer's prior gives a bias b per head. b is added to the head's logit instead
// of B. A mix consists of a header in this folder (formula and constants), a .cpp next to it
// (options, parameters, initial values), and a line in registry.cpp. It does not change the prior:
// tables, windows, rotations and parameter names stay the same. Attention reads a mix as HeadMix of
// ops/attention.h; x is not multiplied by the logit scale.

#include <cstdint>
#include <string>
#include <vector>

#include "core/host_device.h"
#include "core/mechanism.h"

namespace bamtrain {

/// The input of the network f, and the bias b that replaces B:
enum class MixForm : uint8_t {
  concat,           // b = f([x; B])
  concat_residual,  // b = B + f([x; B])
  add_residual,     // b = B + f(x + B). All forms are this one if there is no bias
  bias_only,        // b = B + f(B)
};

/// Number of inputs of f for H heads.
BAMTRAIN_HD constexpr int64_t mix_inputs(MixForm form, int64_t H) {
  return form == MixForm::concat || form == MixForm::concat_residual ? 2 * H : H;
}
/// Whether B itself is part of b.
BAMTRAIN_HD constexpr bool keeps_bias(MixForm form) { return form != MixForm::concat; }

/// One mix, type-erased. parameters() are those of HeadMix, in its order. They depend on whether
/// the layer's prior adds a bias (ModelShape::biased).
struct MixInfo : MechanismInfo {
  /// The form in a layer whose prior adds a bias. In other layers it is add_residual.
  MixForm (*form)(const Options&) = nullptr;
  /// Priors that it can be combined with.
  std::vector<std::string> bases = {};
};

}  // namespace bamtrain

#pragma once
// The alternatives of operations that a config chooses by name.

#include <cstdint>

#include "core/host_device.h"

namespace bamtrain {

/// The activation of the MLP. Phi is the cumulative distribution function of the normal
/// distribution:
///   swiglu    x sigmoid(x), gated: multiplied by a second product
///   geglu     GELU in its tanh form, gated
///   gelu      GELU in its tanh form
///   gelu_erf  x Phi(x)
///   relu      max(x, 0), with derivative 0 at 0
enum class MlpKind : uint8_t { swiglu, geglu, gelu, gelu_erf, relu };
BAMTRAIN_HD constexpr bool is_gated(MlpKind kind) {
  return kind == MlpKind::swiglu || kind == MlpKind::geglu;
}

enum class NormKind : uint8_t { rmsnorm, layernorm };
enum class OptimizerKind : uint8_t { radam, adamw };

}  // namespace bamtrain

#pragma once
// The alternatives of each operation that a config chooses by name.

#include <cstdint>

namespace bamtrain {

enum class MlpKind : uint8_t { swiglu, geglu, gelu };  // SiLU-gated; tanh-GELU-gated; tanh-GELU
enum class NormKind : uint8_t { rmsnorm, layernorm };
enum class NormalizerKind : uint8_t { softmax };
enum class OptimizerKind : uint8_t { radam, adamw };

}  // namespace bamtrain

#pragma once
// The activation of the feed-forward layer, forward and backward. A: float or bf16.
//
// With v(x) = x for swiglu and v(x) = 2 sqrt(2 / pi) (x + 0.044715 x^3) for geglu and gelu (the
// tanh form: (1 + tanh(v / 2)) / 2 = sigmoid(v)), act(x) = x sigmoid(v(x)). For gelu_erf act(x) =
// x (1 + erf(x / sqrt 2)) / 2, for relu max(x, 0).

#include <cstdint>

#include "core/kinds.h"
#include "launch.h"

namespace bamtrain::kernels {

using device::bf16;

/// Elements per row of the input: [gate | up], or the argument alone.
constexpr int64_t activation_width(MlpKind kind, int64_t F) { return is_gated(kind) ? 2 * F : F; }

template <class A>
struct ActivationForward {
  A* out = nullptr;       // (N, F): act(gate) up, or act(in)
  const A* in = nullptr;  // (N, activation_width)
  int64_t N = 0, F = 0;
  MlpKind kind = MlpKind::swiglu;
};

/// One kernel. Refuses an F that is not a multiple of 8, sizes that are not positive, and addresses
/// that are not aligned to 16 bytes.
template <class A>
device::LaunchStatus activation_forward(const ActivationForward<A>& a, device::Stream stream);

template <class A>
struct ActivationBackward {
  A* din = nullptr;         // (N, activation_width), written; may be the memory of `in`
  const A* dout = nullptr;  // (N, F)
  const A* in = nullptr;    // (N, activation_width)
  int64_t N = 0, F = 0;
  MlpKind kind = MlpKind::swiglu;
};

/// One kernel. Refuses what the forward pass refuses.
template <class A>
device::LaunchStatus activation_backward(const ActivationBackward<A>& a, device::Stream stream);

}  // namespace bamtrain::kernels

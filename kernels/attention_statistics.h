#pragma once
// How far attention's rows spread their weights, for logs. See attention_statistics in ops/ops.h.

#include "attention.h"

namespace bamtrain::kernels {

/// entropy (B, H, T) = -sum_j p_ij log p_ij, in nats, and support (B, H, T): the keys with weight,
/// with softmax those that a row sees. One kernel, in plain loops. `saved` is what the forward pass
/// left, `live` aside; v is not read. A: float or bf16, any D and strides; all arithmetic is fp32.
/// Refuses what attention_forward refuses of any D.
template <class A>
device::LaunchStatus attention_statistics(float* entropy, float* support, const SavedRows& saved,
                                          const AttentionInputs<A>& a, device::Stream stream);

}  // namespace bamtrain::kernels

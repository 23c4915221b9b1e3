#pragma once
// The entropy of attention's rows on a device, and logit scales from it, for evaluation. See
// attention_entropy and entropy_scale in ops/ops.h.

#include "attention.h"

namespace bamtrain::kernels {

/// entropy (B, H, T) = -sum_j p_ij log p_ij, in nats: one kernel. `a` has no scale; its v is not
/// read and may be null. A: float or bf16, any D and strides; all arithmetic is fp32. Refuses a
/// scale, and otherwise what attention_forward refuses of any D.
template <class A>
device::LaunchStatus attention_entropy(float* entropy, const AttentionInputs<A>& a,
                                       device::Stream stream);

/// scale (B, H, T) = t of entropy (B, H, T), which may be the same memory, or 1 in the heads before
/// first_head: one kernel. Refuses sizes that are not positive, over 65,535 sequences or heads, and
/// missing arrays.
device::LaunchStatus entropy_scale(float* scale, const float* entropy, int B, int H, int T,
                                   int first_head, device::Stream stream);

}  // namespace bamtrain::kernels

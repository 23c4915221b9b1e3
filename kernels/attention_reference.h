#pragma once
// Attention on a device in plain loops, slow and obviously right: what attention_is_plain() says
// runs on it. The kernels of attention.h are compared with it.

#include "attention.h"

namespace bamtrain::kernels {

constexpr int kReferenceLongestRow = 256;  // D

/// As attention_forward and attention_backward, in bf16 but for stick-breaking, for any D up to
/// kReferenceLongestRow and any strides. All arithmetic is fp32; only what is stored is rounded to
/// A. `partial` and `live` are not used.
template <class A>
device::LaunchStatus attention_reference_forward(const AttentionForward<A>& f,
                                                 device::Stream stream);
template <class A>
device::LaunchStatus attention_reference_backward(const AttentionBackward<A>& g,
                                                  device::Stream stream);

/// Of stick-breaking (attention_reference_sticks.cu), behind these. The arguments have been
/// checked.
device::LaunchStatus attention_reference_sticks_forward(const AttentionForward<float>& f,
                                                        device::Stream stream);
device::LaunchStatus attention_reference_sticks_backward(const AttentionBackward<float>& g,
                                                         device::Stream stream);

}  // namespace bamtrain::kernels

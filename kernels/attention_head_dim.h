#pragma once
// What attention.cu and attention_general.cu define for the head dimension that they are compiled
// for. The arguments have been checked.

#include "attention.h"

namespace bamtrain::kernels {

template <int D>
device::LaunchStatus attention_forward_of(const AttentionForward<bf16>& f, device::Stream stream);

template <int D>
device::LaunchStatus attention_general_forward_of(const AttentionForward<bf16>& f,
                                                  device::Stream stream);

/// All but the last kernel: the partial tables, not their sum. Where the bias was formed, of its
/// queries what belongs to these, and the weights and dz in its place.
template <int D>
device::LaunchStatus attention_backward_of(const AttentionBackward<bf16>& g, device::Stream stream);
template <int D>
device::LaunchStatus attention_general_backward_of(const AttentionBackward<bf16>& g,
                                                   device::Stream stream);

}  // namespace bamtrain::kernels

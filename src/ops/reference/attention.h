#pragma once
// Attention in fp64, one row at a time, and its adjoint. See Backend in ops/ops.h for the contract.

#include "ops/ops.h"

namespace bamtrain {

void reference_attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a);
void reference_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                                  const AttentionSaved& saved, const Attention& a);
void reference_attention_entropy(Tensor entropy, const Attention& a);
/// Of recomputed weights.
void reference_attention_statistics(Tensor entropy, Tensor nonzero_keys, const Attention& a);

}  // namespace bamtrain

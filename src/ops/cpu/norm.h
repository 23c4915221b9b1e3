#pragma once
// RMSNorm and LayerNorm with the residual addition before them, and the adjoint. See Backend.

#include "ops/cpu/isa.h"
#include "ops/ops.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

/// Partial sums of the weights' gradients, one slot per piece of the rows.
struct NormScratch {
  Tensor partial;  // (pieces, 2, C) f32
  void plan(Arena& arena, const WorkspaceShape& w);
};

void cpu_norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                      Tensor weight, Tensor bias, NormKind kind, double eps);
void cpu_norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum,
                       Tensor stats, Tensor weight, NormKind kind, const NormScratch& s);

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

#pragma once
// Skinny GEMM for decode steps: a few rows times a weight. Each element of the weight is read once,
// at memory bandwidth; a library's GEMM would pack the weight first.

#include "core/tensor.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

constexpr int64_t kSkinnyGemmRows = 4;

/// y (N, O) = x (N, I) w^T + b for N <= kSkinnyGemmRows, as in Backend::linear_forward. A row's
/// bits do not depend on other rows or on the number of threads.
void cpu_skinny_gemm(Tensor y, Tensor x, Tensor weight, Tensor bias);

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

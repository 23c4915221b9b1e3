#pragma once
// Products of a few rows with a weight, as tokens that follow one by one have them: each element of
// the weight is read once, as fast as memory gives it, where a library's product packs it first.

#include "core/tensor.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

constexpr int64_t kFewRows = 4;

/// y (N, O) = x (N, I) w^T + b for N <= kFewRows, as Backend::linear_forward. Bits of a row do not
/// depend on the others, nor on the number of threads.
void cpu_linear_of_few_rows(Tensor y, Tensor x, Tensor weight, Tensor bias);

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

#pragma once
// The CPU backend: f32 or bf16 activations, f32 parameters, all threads, bits that do not depend on
// their number.

#include <memory>

#include "ops/ops.h"

namespace bamtrain {

enum class CpuIsa { avx2, avx512 };

/// The backend for the newest instruction set that the processor has and `most` allows; on others
/// than x86-64 there is one only. Error (ExitCode::device) where the processor lacks AVX2.
/// Bits depend on the instruction set.
std::unique_ptr<Backend> make_cpu_backend(CpuIsa most = CpuIsa::avx512);

}  // namespace bamtrain

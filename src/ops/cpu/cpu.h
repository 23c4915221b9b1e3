#pragma once
// The CPU backend: f32 or bf16 activations, f32 parameters, all threads, bits that do not depend on
// their number.

#include <memory>
#include <string>

#include "ops/cpu/isa.h"
#include "ops/ops.h"

namespace bamtrain {

/// The backend for the newest instruction set that the processor has and `most` allows; there is
/// one only, but for products of bf16, on others than x86-64 and in a build with -Dnative=true.
/// Error (ExitCode::device) where the processor is older than x86-64-v3. Bits depend on the
/// instruction set.
std::unique_ptr<Backend> make_cpu_backend(CpuIsa most = kNewestIsa);

/// The library of matrix products and its version as loaded: "2.6.3" of oneDNN.
std::string onednn_version();

/// The newest instruction set that it uses here, as ONEDNN_MAX_CPU_ISA names it: "AVX512_CORE".
/// Bits of products depend on it.
std::string onednn_isa();

}  // namespace bamtrain

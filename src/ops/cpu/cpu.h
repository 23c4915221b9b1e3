#pragma once
// The CPU backend: f32 or bf16 activations, f32 parameters. It uses all threads; results are
// bitwise identical for any number of threads.

#include <memory>
#include <string>

#include "ops/cpu/isa.h"
#include "ops/ops.h"

namespace bamtrain {

/// The backend for the newest instruction set that the processor has and `most` allows. Builds for
/// architectures other than x86-64 and with -Dnative=true have only one, apart from bf16 products.
/// Throws Error (ExitCode::device) if the processor is older than x86-64-v3. Results depend on the
/// instruction set.
std::unique_ptr<Backend> make_cpu_backend(CpuIsa most = kNewestIsa);

/// The library of matrix products and its version as loaded: "2.6.3" for oneDNN.
std::string onednn_version();

/// The newest instruction set that oneDNN uses here, in the terms of ONEDNN_MAX_CPU_ISA:
/// "AVX512_CORE". The bits of products depend on it.
std::string onednn_isa();

}  // namespace bamtrain

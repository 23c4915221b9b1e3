#pragma once
// Benchmarks older instruction sets on newer processors.

#include <memory>
#include <string>

#include "ops/ops.h"

namespace bamtrain::bench {

/// The backend for "newest" (what the processor has) or "avx2" (fp32 only). "avx2" limits oneDNN to
/// AVX2 too, so its product rates are those of an AVX2 processor at this one's clock. REQUIRES: no
/// matrix product before the call. Throws Error (ExitCode::device) if oneDNN cannot be limited or
/// the build has only one instruction set, ExitCode::usage for bf16.
std::unique_ptr<Backend> make_backend_for(const std::string& isa, Dtype activations);

}  // namespace bamtrain::bench

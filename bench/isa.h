#pragma once
// Figures of older processors on newer ones.

#include <memory>
#include <string>

#include "ops/ops.h"

namespace bamtrain::bench {

/// The backend for "newest" (what the processor has) or "avx2", for fp32 alone. The latter keeps
/// oneDNN at AVX2 too, so that rates of its products are those of such a processor at this one's
/// clock. REQUIRES: no matrix product before the call. Error (ExitCode::device) where oneDNN cannot
/// be kept there and in a build for one instruction set alone, ExitCode::usage for bf16.
std::unique_ptr<Backend> make_backend_for(const std::string& isa, Dtype activations);

}  // namespace bamtrain::bench

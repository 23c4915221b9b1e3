#pragma once
// The CUDA backend: bf16 or f32 activations, f32 parameters, compute capability 8.0 or later.
// Results are bitwise identical on the same device with the same libraries. In bf16 a product is
// rounded before a bias is added to it.

#include <memory>

#include "ops/ops.h"

namespace bamtrain {

/// The number of devices that this process can see; 0 without a driver. Throws Error
/// (ExitCode::device) if the driver is too old or does not work.
int cuda_devices();

/// The backend on device `index`. Throws Error (ExitCode::device) if the device does not exist or
/// is too old, or if cuBLASLt is missing.
///
/// Restrictions beyond those of ops.h: widths (C, F, every output of a linear layer with a bias)
/// are multiples of 8; bf16 attention takes head dimensions 16, 32, 48, 64, 80, 96 and 128. Other
/// shapes throw Error (ExitCode::config) in plan().
///
/// `tf32`: products of f32 activations are computed in TF32.
std::unique_ptr<Backend> make_cuda_backend(int index, bool tf32 = false);

/// The same without a device, to plan the memory of a run: every plan fits, and nothing is
/// allocated. REQUIRES: only plan() and memory() are called.
std::unique_ptr<Backend> make_cuda_plan();

}  // namespace bamtrain

#pragma once
// The CUDA backend: bf16 or f32 activations, f32 parameters, compute capability 8.0 and later. The
// same device and libraries give the same bits. In bf16 a product is rounded before a bias is added
// to it.

#include <memory>

#include "ops/ops.h"

namespace bamtrain {

/// Devices that this process can see: 0 without a driver. Error (ExitCode::device) where the driver
/// is too old or does not work.
int cuda_devices();

/// The backend on device `index`. Error (ExitCode::device) where there is none, it is too old, or
/// cuBLASLt is absent.
///
/// Shapes beyond those of ops.h: widths (C, F, every output of a linear layer with a bias) are
/// multiples of 8; bf16 attention takes head dimensions 16, 32, 48, 64, 80, 96 and 128. Anything
/// else is an Error (ExitCode::config) at plan().
///
/// `tf32`: products of f32 activations are computed in TF32.
std::unique_ptr<Backend> make_cuda_backend(int index, bool tf32 = false);

/// The same without a device, to plan what a run would take of one: its memory has room for every
/// plan and gives none. REQUIRES: nothing but plan() and memory() is called.
std::unique_ptr<Backend> make_cuda_plan();

}  // namespace bamtrain

// One thread per head; in the adjoint one block.

#include "alpha.h"
#include "arguments.h"
#include "reductions.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kAlphaWarps = 8, kAlphaThreads = 32 * kAlphaWarps;

}  // namespace

BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kAlphaThreads)
    alphas_of_theta(float* alphas, const float* theta, int64_t H) {
  const int64_t h = int64_t{device::block_index().x} * kAlphaThreads + device::thread_index().x;
  if (h >= H) return;
  const auto x = static_cast<double>(theta[h]);
  alphas[h] = static_cast<float>(1 + fmax(x, 0.0) + log1p(exp(-fabs(x))));
}

LaunchStatus alpha_forward(float* alphas, const float* theta, int64_t H, Stream stream) {
  if (H < 1) return device::refused("alpha: a size is not positive");
  if (alphas == nullptr || theta == nullptr) return device::refused("alpha: an array is missing");
  return device::launch(alphas_of_theta, grid_of(blocks_of(H, kAlphaThreads)),
                        {kAlphaThreads, 1, 1}, 0, stream, alphas, theta, H);
}

/// dtheta (H), +=. Launch with H blocks.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kAlphaThreads)
    gradient_of_alpha(float* dtheta, const float* dalpha, const float* theta, int64_t B, int64_t H,
                      int64_t T) {
  BAMTRAIN_SHARED(double, sums, kAlphaWarps);
  const int64_t h = device::block_index().x;
  double own = 0;
  for (int64_t b = 0; b < B; ++b) {
    const float* const rows = dalpha + (b * H + h) * T;
    for (int64_t t = device::thread_index().x; t < T; t += kAlphaThreads) {
      own += static_cast<double>(rows[t]);
    }
  }
  const double sum = block_sum<kAlphaWarps>(own, sums);
  if (device::thread_index().x != 0) return;
  add_to(dtheta + h, sum / (1 + exp(-static_cast<double>(theta[h]))));
}

LaunchStatus alpha_backward(float* dtheta, const float* dalpha, const float* theta, int64_t B,
                            int64_t H, int64_t T, Stream stream) {
  if (B < 1 || H < 1 || T < 1) return device::refused("alpha: a size is not positive");
  if (dtheta == nullptr || dalpha == nullptr || theta == nullptr) {
    return device::refused("alpha: an array is missing");
  }
  return device::launch(gradient_of_alpha, grid_of(H), {kAlphaThreads, 1, 1}, 0, stream, dtheta,
                        dalpha, theta, B, H, T);
}

}  // namespace bamtrain::kernels

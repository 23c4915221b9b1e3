// The optimizer pass: reads 16 bytes and writes 12 per parameter, 14 with a bf16 copy.

#include <cmath>

#include "arguments.h"
#include "core/clip_factor.h"
#include "optimizer.h"
#include "vectors_of_four.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kOptimizerThreads = 256;
constexpr int kOptimizerPerThread = 4;

struct UpdatedParameter {
  float w, m, v;
};

/// The step's factors, each rounded once.
struct StepFactors {
  float decay, step_size, v_scale;
  bool adaptive;

  BAMTRAIN_DEVICE explicit StepFactors(const double* f)
      : decay(static_cast<float>(f[0])),
        step_size(static_cast<float>(f[1])),
        v_scale(static_cast<float>(f[2])),
        adaptive(f[3] != 0) {}
};

BAMTRAIN_DEVICE UpdatedParameter updated_parameter(float w, float m, float v, float g,
                                                   const StepFactors& f,
                                                   const OptimizerScalars& s) {
  m = fmaf(s.beta1, m, s.one_minus_beta1 * g);
  v = fmaf(s.beta2, v, s.one_minus_beta2 * g * g);
  const float step = f.adaptive ? m / fmaf(sqrtf(v), f.v_scale, s.eps) : m;
  const float updated = fmaf(-f.step_size, step, fmaf(-f.decay, w, w));
  return {updated < s.minimum ? s.minimum : updated > s.maximum ? s.maximum : updated, m, v};
}

/// kVectors: the thread's four elements are accessed as vectors.
template <bool kVectors>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kOptimizerThreads)
    optimizer_update(float* weights, float* moments, float* variances, bf16* copy,
                     const float* gradients, const double* factor, int64_t n, const double* factors,
                     const OptimizerScalars s) {
  const float g_scale = factor == nullptr ? 1.0f : static_cast<float>(*factor);
  if (std::isnan(g_scale)) return;
  const StepFactors f(factors);
  constexpr int kStride = kVectors ? 1 : kOptimizerThreads;  // between a thread's elements
  const int64_t first = int64_t{device::block_index().x} * kOptimizerThreads * kOptimizerPerThread +
                        int64_t{device::thread_index().x} * (kVectors ? kOptimizerPerThread : 1);
  float w[4], m[4], v[4], g[4];
  if (kVectors && first + 4 <= n) {
    load_vector(w, weights + first);
    load_vector(m, moments + first);
    load_vector(v, variances + first);
    load_vector(g, gradients + first);
    BAMTRAIN_UNROLL
    for (int k = 0; k < 4; ++k) {
      const UpdatedParameter u = updated_parameter(w[k], m[k], v[k], g[k] * g_scale, f, s);
      w[k] = u.w;
      m[k] = u.m;
      v[k] = u.v;
    }
    store_vector(weights + first, w);
    store_vector(moments + first, m);
    store_vector(variances + first, v);
    if (copy != nullptr) store_four(copy + first, w);
    return;
  }
  BAMTRAIN_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int64_t i = first + k * kStride;
    if (i >= n) continue;
    w[k] = weights[i];
    m[k] = moments[i];
    v[k] = variances[i];
    g[k] = gradients[i];
  }
  BAMTRAIN_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int64_t i = first + k * kStride;
    if (i >= n) continue;
    const UpdatedParameter u = updated_parameter(w[k], m[k], v[k], g[k] * g_scale, f, s);
    weights[i] = u.w;
    moments[i] = u.m;
    variances[i] = u.v;
    if (copy != nullptr) store_one(copy + i, u.w);
  }
}

BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(1)
    update_clip_factor(double* factor, const double* squared_norm, double clip,
                       const double* scale) {
  *factor = next_clip_factor(*factor, *squared_norm, clip, *scale);
}

}  // namespace

LaunchStatus clip_factor(double* factor, const double* squared_norm, double clip,
                         const double* scale, Stream stream) {
  if (factor == nullptr || squared_norm == nullptr || scale == nullptr) {
    return device::refused("clip_factor: a factor, a squared norm and a scale");
  }
  return device::launch(update_clip_factor, {1, 1, 1}, {1, 1, 1}, 0, stream, factor, squared_norm,
                        clip, scale);
}

LaunchStatus optimizer_step(float* weights, float* m, float* v, bf16* copy, const float* gradients,
                            const double* factor, int64_t n, const double* factors,
                            const OptimizerScalars& s, Stream stream) {
  constexpr int64_t kPerBlock = kOptimizerThreads * kOptimizerPerThread;
  if (n < 1 || n > kMaxBlocks * kPerBlock) {
    return device::refused("optimizer_step: n of at least 1");
  }
  if (weights == nullptr || m == nullptr || v == nullptr || gradients == nullptr ||
      factors == nullptr) {
    return device::refused("optimizer_step: weights, m, v, gradients and factors");
  }
  const bool vectors =
      aligned(weights, m, v, gradients) && reinterpret_cast<uintptr_t>(copy) % 8 == 0;
  return device::launch(vectors ? optimizer_update<true> : optimizer_update<false>,
                        grid_of(blocks_of(n, kPerBlock)), {kOptimizerThreads, 1, 1}, 0, stream,
                        weights, m, v, copy, gradients, factor, n, factors, s);
}

}  // namespace bamtrain::kernels

// A thread per row of a head.

#include "adaptive_scale.h"
#include "arguments.h"
#include "reductions.cuh"
#include "scales/adaptive.h"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

constexpr int kAdaptiveWarps = kAdaptiveRows / 32;

/// The row of a thread. Launch with grid (ceil(T / kAdaptiveRows), H, B) and kAdaptiveRows threads.
struct AdaptiveRow {
  int b, h, t;

  BAMTRAIN_DEVICE AdaptiveRow() {
    b = static_cast<int>(device::block_index().z);
    h = static_cast<int>(device::block_index().y);
    t = static_cast<int>(device::block_index().x * kAdaptiveRows + device::thread_index().x);
  }
  /// In a (B, H, T) array.
  template <class A>
  BAMTRAIN_DEVICE int64_t index(const AdaptiveScale<A>& s) const {
    return (static_cast<int64_t>(b) * s.H + h) * s.T + t;
  }
  /// In the gates: of beta (0) or gamma (1).
  template <class A>
  BAMTRAIN_DEVICE int64_t gate_index(const AdaptiveScale<A>& s, int which) const {
    return b * s.batch + t * s.row + which * s.H + h;
  }
  template <class A>
  BAMTRAIN_DEVICE double gate(const AdaptiveScale<A>& s, int which) const {
    const double x = static_cast<double>(load_one(s.gates + gate_index(s, which)));
    return s.bias[which] == nullptr ? x : x + static_cast<double>(s.bias[which][h]);
  }
  /// Keys that it sees.
  template <class A>
  BAMTRAIN_DEVICE int64_t keys(const AdaptiveScale<A>& s) const {
    return t - s.first_key[static_cast<int64_t>(b) * s.T + t] + 1;
  }
};

template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kAdaptiveRows)
    rows_of_adaptive(float* scale, const AdaptiveScale<A> s) {
  const AdaptiveRow own;
  if (own.t >= s.T) return;
  double value = 1;
  if (own.h >= s.first_head) {
    value = Adaptive(s.constants).value(own.gate(s, 0), own.gate(s, 1), own.keys(s));
  }
  scale[own.index(s)] = static_cast<float>(value);
}

/// scratch[which][h][b][piece]: the block's part of dbias.
template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kAdaptiveRows)
    gradient_of_adaptive(const AdaptiveScaleGradients<A> g, const AdaptiveScale<A> s) {
  BAMTRAIN_SHARED(double, sums, kAdaptiveWarps);
  const AdaptiveRow own;
  double d[2] = {0, 0};
  if (own.t < s.T) {
    if (own.h >= s.first_head) {
      Adaptive(s.constants)
          .adjoint(static_cast<double>(g.dscale[own.index(s)]), own.gate(s, 0), own.gate(s, 1),
                   own.keys(s), &d[0], &d[1]);
    }
    BAMTRAIN_UNROLL
    for (int k = 0; k < 2; ++k) {
      store_one(g.dgates + own.gate_index(s, k), static_cast<float>(d[k]));
    }
  }
  if (s.bias[0] == nullptr) return;  // all threads
  const device::Dim3 grid = device::grid_size();
  BAMTRAIN_UNROLL
  for (int k = 0; k < 2; ++k) {
    device::barrier();  // the sum before has been read
    const double sum = block_sum<kAdaptiveWarps>(d[k], sums);
    if (device::thread_index().x == 0) {
      const int64_t of_head = (static_cast<int64_t>(k) * s.H + own.h) * s.B + own.b;
      g.scratch[of_head * grid.x + device::block_index().x] = sum;
    }
  }
}

/// dbias[which][h] += the sum of partial[which][h][...]. A warp each: grid (H, 2).
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32)
    join_adaptive_biases(float* beta, float* gamma, const double* partial, int64_t count) {
  const int64_t h = device::block_index().x, which = device::block_index().y;
  const double sum = warp_sum_of(partial + (which * device::grid_size().x + h) * count, count);
  if (device::thread_index().x == 0) add_to((which == 0 ? beta : gamma) + h, sum);
}

template <class A>
const char* refusal(const AdaptiveScale<A>& s) {
  if (s.B < 1 || s.T < 1 || s.H < 1) return "adaptive scale: a size is not positive";
  if (s.B > 65535 || s.H > 65535) return "adaptive scale: over 65,535 sequences or heads";
  if (s.first_head < 0 || s.first_head >= s.H) return "adaptive scale: no such first head";
  if (s.gates == nullptr || s.first_key == nullptr) {
    return "adaptive scale: gates or first_key are missing";
  }
  return (s.bias[0] == nullptr) != (s.bias[1] == nullptr)
             ? "adaptive scale: one bias without the other"
             : nullptr;
}

}  // namespace

template <class A>
device::LaunchStatus adaptive_scale_forward(float* scale, const AdaptiveScale<A>& s,
                                            device::Stream stream) {
  if (const char* why = refusal(s)) return device::refused(why);
  if (scale == nullptr) return device::refused("adaptive scale: scale is missing");
  return device::launch(rows_of_adaptive<A>, grid_of_rows(s.T, kAdaptiveRows, s.H, s.B),
                        {kAdaptiveRows, 1, 1}, 0, stream, scale, s);
}

template <class A>
device::LaunchStatus adaptive_scale_backward(const AdaptiveScaleGradients<A>& g,
                                             const AdaptiveScale<A>& s, device::Stream stream) {
  if (const char* why = refusal(s)) return device::refused(why);
  if (g.dgates == nullptr || g.dscale == nullptr) {
    return device::refused("adaptive scale: dgates or dscale is missing");
  }
  const bool bias = s.bias[0] != nullptr;
  if (bias && (g.dbias[0] == nullptr || g.dbias[1] == nullptr || g.scratch == nullptr)) {
    return device::refused("adaptive scale: a bias without dbias or scratch");
  }
  const device::Dim3 grid = grid_of_rows(s.T, kAdaptiveRows, s.H, s.B);
  const device::LaunchStatus status =
      device::launch(gradient_of_adaptive<A>, grid, {kAdaptiveRows, 1, 1}, 0, stream, g, s);
  if (!status.ok() || !bias) return status;
  return device::launch(join_adaptive_biases, {static_cast<uint32_t>(s.H), 2, 1}, {32, 1, 1}, 0,
                        stream, g.dbias[0], g.dbias[1], g.scratch, int64_t{grid.x} * s.B);
}

template device::LaunchStatus adaptive_scale_forward(float*, const AdaptiveScale<float>&,
                                                     device::Stream);
template device::LaunchStatus adaptive_scale_forward(float*, const AdaptiveScale<bf16>&,
                                                     device::Stream);
template device::LaunchStatus adaptive_scale_backward(const AdaptiveScaleGradients<float>&,
                                                      const AdaptiveScale<float>&, device::Stream);
template device::LaunchStatus adaptive_scale_backward(const AdaptiveScaleGradients<bf16>&,
                                                      const AdaptiveScale<bf16>&, device::Stream);

}  // namespace bamtrain::kernels

#include "activation.h"
#include "matrix_tiles.cuh"

namespace bamtrain::kernels {

namespace {

constexpr int kActivationRows = 2;  // per thread

struct Activated {
  float value, derivative;
};

/// act(x) = x s(v(x)) and act'(x) = s + x s (1 - s) v'(x), s the sigmoid; see activation.h.
template <MlpKind kKind>
BAMTRAIN_DEVICE Activated activated(float x) {
  if (kKind == MlpKind::relu) return {x < 0 ? 0 : x, x > 0 ? 1.0f : 0.0f};
  if (kKind == MlpKind::gelu_erf) {
    constexpr float kRootHalf = 0.707106781f, kMinusHalfLog2e = -0.72134752f;
    constexpr float kDensity = 0.39894228f;  // 1 / sqrt(2 pi)
    const float below = 0.5f * (1 + erff(kRootHalf * x));
    return {x * below, below + kDensity * x * device::exp2_approx(kMinusHalfLog2e * x * x)};
  }
  constexpr float kMinusLog2e = -1.44269504f;
  constexpr float kScale = 1.59576912f, kCubic = 0.044715f;  // 2 sqrt(2 / pi)
  float v = x, slope = 1;
  if (kKind != MlpKind::swiglu) {
    const float square = kCubic * x * x;
    v = kScale * x * (1 + square);
    slope = kScale * (1 + 3 * square);
  }
  const float s = 1 / (1 + device::exp2_approx(kMinusLog2e * v));
  return {x * s, s + x * s * (1 - s) * slope};
}

template <class A>
const char* activation_refusal(const A* x, const A* y, const A* z, int64_t N, int64_t F) {
  if (N <= 0 || F <= 0) return "activation: a size is not positive";
  if (F % 8 != 0) return "activation: F is no multiple of 8";
  if (N > kMaxBlocks / column_tiles<A>(F)) return "activation: N F is too large";
  if (!aligned(x, y, z)) return "activation: an address is not aligned to 16 bytes";
  return nullptr;
}

/// Calls f with the kind as a constant.
template <class F>
device::LaunchStatus dispatch_kind(MlpKind kind, F&& f) {
  switch (kind) {
    case MlpKind::swiglu:
      return f.template operator()<MlpKind::swiglu>();
    case MlpKind::geglu:
      return f.template operator()<MlpKind::geglu>();
    case MlpKind::gelu:
      return f.template operator()<MlpKind::gelu>();
    case MlpKind::gelu_erf:
      return f.template operator()<MlpKind::gelu_erf>();
    case MlpKind::relu:
      return f.template operator()<MlpKind::relu>();
  }
  return device::refused("activation: no such kind");
}

}  // namespace

template <class A, MlpKind kKind>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kMatrixThreads)
    activate_tiles(A* out, const A* in, int64_t N, int64_t F, uint32_t tiles) {
  constexpr bool kGated = is_gated(kKind);
  const MatrixTile<A> tile(tiles);
  if (tile.column >= F) return;
  const int64_t first = tile.index * (kMatrixWarps * kActivationRows) + tile.warp;
  float gate[kActivationRows][kVector<A>], up[kActivationRows][kVector<A>];
  BAMTRAIN_UNROLL
  for (int k = 0; k < kActivationRows; ++k) {
    const int64_t row = first + k * kMatrixWarps;
    if (row >= N) break;
    const A* at = in + row * (kGated ? 2 * F : F) + tile.column;
    load_vector(gate[k], at);
    if (kGated) load_vector(up[k], at + F);
  }
  BAMTRAIN_UNROLL
  for (int k = 0; k < kActivationRows; ++k) {
    const int64_t row = first + k * kMatrixWarps;
    if (row >= N) break;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kVector<A>; ++n) {
      const float value = activated<kKind>(gate[k][n]).value;
      gate[k][n] = kGated ? value * up[k][n] : value;
    }
    store_vector(out + row * F + tile.column, gate[k]);
  }
}

template <class A>
device::LaunchStatus activation_forward(const ActivationForward<A>& a, device::Stream stream) {
  if (const char* why = activation_refusal<A>(a.out, a.in, nullptr, a.N, a.F))
    return device::refused(why);
  const int64_t tiles = column_tiles<A>(a.F);
  const int64_t blocks = blocks_of(a.N, kMatrixWarps * kActivationRows) * tiles;
  return dispatch_kind(a.kind, [&]<MlpKind kKind>() {
    return device::launch(activate_tiles<A, kKind>, grid_of(blocks), {kMatrixThreads, 1, 1}, 0,
                          stream, a.out, a.in, a.N, a.F, tiles);
  });
}

/// Each thread reads its elements of a row before it writes them: din may be in.
template <class A, MlpKind kKind>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kMatrixThreads)
    activate_tiles_backward(A* din, const A* dout, const A* in, int64_t N, int64_t F,
                            uint32_t tiles) {
  constexpr bool kGated = is_gated(kKind);
  const MatrixTile<A> tile(tiles);
  if (tile.column >= F) return;
  const int64_t first = tile.index * (kMatrixWarps * kActivationRows) + tile.warp;
  float gate[kActivationRows][kVector<A>], up[kActivationRows][kVector<A>];
  float d[kActivationRows][kVector<A>];
  BAMTRAIN_UNROLL
  for (int k = 0; k < kActivationRows; ++k) {
    const int64_t row = first + k * kMatrixWarps;
    if (row >= N) break;
    const A* at = in + row * (kGated ? 2 * F : F) + tile.column;
    load_vector(gate[k], at);
    if (kGated) load_vector(up[k], at + F);
    load_vector(d[k], dout + row * F + tile.column);
  }
  BAMTRAIN_UNROLL
  for (int k = 0; k < kActivationRows; ++k) {
    const int64_t row = first + k * kMatrixWarps;
    if (row >= N) break;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kVector<A>; ++n) {
      const Activated a = activated<kKind>(gate[k][n]);
      gate[k][n] = d[k][n] * (kGated ? up[k][n] * a.derivative : a.derivative);
      if (kGated) up[k][n] = d[k][n] * a.value;
    }
    A* at = din + row * (kGated ? 2 * F : F) + tile.column;
    store_vector(at, gate[k]);
    if (kGated) store_vector(at + F, up[k]);
  }
}

template <class A>
device::LaunchStatus activation_backward(const ActivationBackward<A>& a, device::Stream stream) {
  if (const char* why = activation_refusal(a.in, a.dout, const_cast<const A*>(a.din), a.N, a.F)) {
    return device::refused(why);
  }
  const int64_t tiles = column_tiles<A>(a.F);
  const int64_t blocks = blocks_of(a.N, kMatrixWarps * kActivationRows) * tiles;
  return dispatch_kind(a.kind, [&]<MlpKind kKind>() {
    return device::launch(activate_tiles_backward<A, kKind>, grid_of(blocks),
                          {kMatrixThreads, 1, 1}, 0, stream, a.din, a.dout, a.in, a.N, a.F, tiles);
  });
}

template device::LaunchStatus activation_forward(const ActivationForward<float>&, device::Stream);
template device::LaunchStatus activation_forward(const ActivationForward<bf16>&, device::Stream);
template device::LaunchStatus activation_backward(const ActivationBackward<float>&, device::Stream);
template device::LaunchStatus activation_backward(const ActivationBackward<bf16>&, device::Stream);

}  // namespace bamtrain::kernels

// One thread per row of a sequence. In the adjoint, blocks of rows, then one warp per head.

#include "arguments.h"
#include "by_name.h"
#include "reductions.cuh"
#include "scale_rows.h"
#include "scales/by_length.h"
#include "scales/length_scales.h"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kScaleWarps = 8, kScaleThreads = 32 * kScaleWarps;

template <template <class> class S>
BAMTRAIN_DEVICE S<double> scale_of_head(const ScaleRows& rows, int64_t h) {
  double theta[kMaxScaleScalars] = {};
  BAMTRAIN_UNROLL
  for (int p = 0; p < S<double>::kParameters; ++p) {
    theta[p] = static_cast<double>(rows.theta[p][h]);
  }
  return S<double>(theta, rows.constants);
}

/// Keys that row i of sequence b sees; row = b T + i.
BAMTRAIN_DEVICE int64_t keys_of(const ScaleRows& rows, int64_t row, int64_t i) {
  return (rows.last_key != nullptr ? rows.last_key[row] : i) - rows.first_key[row] + 1;
}

/// Writes value(h, n) at n keys for the scaled heads. One thread per row.
template <class Value>
BAMTRAIN_DEVICE void write_rows(float* scale, const ScaleRows& rows, const Value& value) {
  const int64_t row = int64_t{device::block_index().x} * kScaleThreads + device::thread_index().x;
  if (row >= rows.B * rows.T) return;
  const int64_t b = row / rows.T, i = row % rows.T;
  const int64_t n = keys_of(rows, row, i);
  for (int64_t h = 0; h < rows.H; ++h) {
    const double t = h < rows.first_head ? 1 : value(h, n);
    scale[(b * rows.H + h) * rows.T + i] = static_cast<float>(t);
  }
}

template <template <class> class S>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kScaleThreads)
    rows_of_scale(float* scale, const ScaleRows rows) {
  write_rows(scale, rows, [&](int64_t h, int64_t n) { return scale_of_head<S>(rows, h).value(n); });
}

/// partial[p][h][block]: the contribution of kScaleRowsPerBlock rows to dtheta[p][h], with h
/// counted from first_head.
template <template <class> class S>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kScaleThreads)
    gradient_of_scale(double* partial, const float* dscale, const ScaleRows rows) {
  BAMTRAIN_SHARED(double, sums, kScaleWarps);
  constexpr int kParameters = S<double>::kParameters;
  const int64_t h = rows.first_head + device::block_index().y;
  const S<double> of_head = scale_of_head<S>(rows, h);
  const auto T = static_cast<uint32_t>(rows.T), all = static_cast<uint32_t>(rows.B) * T;
  const uint32_t first = device::block_index().x * kScaleRowsPerBlock;
  const uint32_t end = all - first < kScaleRowsPerBlock ? all : first + kScaleRowsPerBlock;
  double own[kParameters] = {};
  for (uint32_t row = first + device::thread_index().x; row < end; row += kScaleThreads) {
    const uint32_t b = row / T, i = row % T;
    of_head.accumulate(static_cast<double>(dscale[(b * rows.H + h) * rows.T + i]),
                       keys_of(rows, row, i), own);
  }
  BAMTRAIN_UNROLL
  for (int p = 0; p < kParameters; ++p) {
    device::barrier();  // the previous sum has been read
    const double sum = block_sum<kScaleWarps>(own[p], sums);
    if (device::thread_index().x == 0) {
      const int64_t head = p * device::grid_size().y + device::block_index().y;
      partial[head * device::grid_size().x + device::block_index().x] = sum;
    }
  }
}

/// dtheta[h] += the sum of partial[h][...]. One warp per head.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32)
    join_scale_gradients(float* dtheta, const double* partial, int64_t count) {
  const int64_t h = device::block_index().x;
  const double sum = warp_sum_of(partial + h * count, count);
  if (device::thread_index().x == 0) add_to(dtheta + h, sum);
}

BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kScaleThreads)
    rows_by_length(float* scale, const ScaleRows rows) {
  write_rows(scale, rows, [&](int64_t h, int64_t n) {
    return static_cast<double>(rows.theta[0][ByLengthScale::index(rows.constants, h, n)]);
  });
}

/// One thread per length n up to T. It searches for the rows that see n keys; they begin at n - 1
/// if no row sees a key after it.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kScaleThreads)
    gradient_by_length(float* dtheta, const float* dscale, const ScaleRows rows) {
  const int64_t h = rows.first_head + device::block_index().y;
  const int64_t n = int64_t{device::block_index().x} * kScaleThreads + device::thread_index().x + 1;
  if (n > rows.T) return;
  const int64_t first = rows.last_key != nullptr ? 0 : n - 1;
  double sum = 0;
  for (int64_t b = 0; b < rows.B; ++b) {
    for (int64_t i = first; i < rows.T; ++i) {
      if (keys_of(rows, b * rows.T + i, i) != n) continue;
      sum += static_cast<double>(dscale[(b * rows.H + h) * rows.T + i]);
    }
  }
  if (sum == 0) return;  // also for n past the table's end, which no row reaches
  add_to(dtheta + ByLengthScale::index(rows.constants, h, n), sum);
}

struct ScaleKernels {
  const char* name;
  int parameters;
  LaunchStatus (*forward)(float*, const ScaleRows&, Stream);
  LaunchStatus (*backward)(const ScaleGradients&, const ScaleRows&, Stream);
};

template <template <class> class S>
LaunchStatus launch_rows(float* scale, const ScaleRows& rows, Stream stream) {
  return device::launch(rows_of_scale<S>, grid_of(blocks_of(rows.B * rows.T, kScaleThreads)),
                        {kScaleThreads, 1, 1}, 0, stream, scale, rows);
}

template <template <class> class S>
LaunchStatus launch_scale_gradient(const ScaleGradients& g, const ScaleRows& rows, Stream stream) {
  constexpr int kParameters = S<double>::kParameters;
  if constexpr (kParameters == 0) {
    return {};
  } else {
    const int64_t blocks = blocks_of(rows.B * rows.T, kScaleRowsPerBlock);
    const auto heads = static_cast<uint32_t>(rows.H - rows.first_head);
    LaunchStatus status =
        device::launch(gradient_of_scale<S>, {static_cast<uint32_t>(blocks), heads, 1},
                       {kScaleThreads, 1, 1}, 0, stream, g.scratch, g.dscale, rows);
    for (int p = 0; p < kParameters && status.ok(); ++p) {
      if (g.dtheta[p] == nullptr) continue;
      status =
          device::launch(join_scale_gradients, {heads, 1, 1}, {32, 1, 1}, 0, stream,
                         g.dtheta[p] + rows.first_head, g.scratch + p * heads * blocks, blocks);
    }
    return status;
  }
}

LaunchStatus launch_rows_by_length(float* scale, const ScaleRows& rows, Stream stream) {
  return device::launch(rows_by_length, grid_of(blocks_of(rows.B * rows.T, kScaleThreads)),
                        {kScaleThreads, 1, 1}, 0, stream, scale, rows);
}

LaunchStatus launch_gradient_by_length(const ScaleGradients& g, const ScaleRows& rows,
                                       Stream stream) {
  const auto blocks = static_cast<uint32_t>(blocks_of(rows.T, kScaleThreads));
  const auto heads = static_cast<uint32_t>(rows.H - rows.first_head);
  return device::launch(gradient_by_length, {blocks, heads, 1}, {kScaleThreads, 1, 1}, 0, stream,
                        g.dtheta[0], g.dscale, rows);
}

template <template <class> class S>
constexpr ScaleKernels scale_kernels() {
  return {S<double>::kName, S<double>::kParameters, launch_rows<S>, launch_scale_gradient<S>};
}
template <template <class> class... S>
constexpr std::array<ScaleKernels, sizeof...(S) + 1> kernels_of(LengthScaleList<S...>) {
  return {scale_kernels<S>()...,
          {"by_length", 1, launch_rows_by_length, launch_gradient_by_length}};
}
/// Every scale of kind length.
constexpr auto kScales = kernels_of(LengthScales());

LaunchStatus check_scale(const ScaleRows& rows, const ScaleKernels* kernels) {
  if (kernels == nullptr) return device::refused("scale: a name that has kernels");
  if (!is_head_count(rows.H) || rows.B < 1 || rows.B > kMaxBlocks || rows.T < 1 ||
      rows.T > kMaxBlocks / rows.B) {
    return device::refused("scale: H, 1 to 2^16 - 1, and B T, 1 to 2^31 - 1");
  }
  if (rows.first_head < 0 || rows.first_head >= rows.H) {
    return device::refused("scale: a first head of those that there are");
  }
  for (int p = 0; p < kernels->parameters; ++p) {
    if (rows.theta[p] == nullptr) return device::refused("scale: a theta per parameter");
  }
  return {};
}

}  // namespace

LaunchStatus scale_forward(float* scale, const ScaleRows& rows, Stream stream) {
  const ScaleKernels* kernels = find_kernels(kScales, rows.name);
  const LaunchStatus status = check_scale(rows, kernels);
  return status.ok() ? kernels->forward(scale, rows, stream) : status;
}

LaunchStatus scale_backward(const ScaleGradients& g, const ScaleRows& rows, Stream stream) {
  const ScaleKernels* kernels = find_kernels(kScales, rows.name);
  const LaunchStatus status = check_scale(rows, kernels);
  if (!status.ok()) return status;
  bool any = false;
  for (int p = 0; p < kernels->parameters; ++p) any |= g.dtheta[p] != nullptr;
  return any ? kernels->backward(g, rows, stream) : LaunchStatus{};
}

}  // namespace bamtrain::kernels

#include "arguments.h"
#include "norm.h"
#include "partial_sums.cuh"
#include "reductions.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

/// A row lies in the registers of kWarps warps. Vector v of a thread starts at column (32 kWarps v
/// + the thread's index in the warps) kVector. kOctets: 8-element groups per thread.
template <class A, int kWarps, int kOctets>
struct RowPlace {
  static constexpr int kVectors = 8 * kOctets / kVector<A>;
  int place;

  BAMTRAIN_DEVICE RowPlace() : place(static_cast<int>(device::thread_index().x) % (32 * kWarps)) {}
  BAMTRAIN_DEVICE int column(int v) const { return (32 * kWarps * v + place) * kVector<A>; }
};

/// Calls f with the number of warps per row and octets per thread that hold C elements.
template <class F>
device::LaunchStatus dispatch_width(int C, F&& f) {
  if (C <= 256) return f.template operator()<1, 1>();
  if (C <= 512) return f.template operator()<1, 2>();
  if (C <= 768) return f.template operator()<1, 3>();
  if (C <= 1024) return f.template operator()<1, 4>();
  if (C <= 1536) return f.template operator()<2, 3>();
  if (C <= 2048) return f.template operator()<2, 4>();
  if (C <= 3072) return f.template operator()<4, 3>();
  if (C <= 4096) return f.template operator()<4, 4>();
  if (C <= 6144) return f.template operator()<8, 3>();
  static_assert(kNormMaxC == 8 * 4 * 256);
  return f.template operator()<8, 4>();
}

template <class... T>
const char* norm_refusal(int64_t N, int C, const T*... addresses) {
  if (N <= 0 || C <= 0) return "norm: a size is not positive";
  if (C % 8 != 0) return "norm: C is no multiple of 8";
  if (C > kNormMaxC) return "norm: C exceeds 8192";
  if (N > kMaxBlocks) return "norm: N is too large";
  if (!aligned(addresses...)) return "norm: an address is not aligned to 16 bytes";
  return nullptr;
}

}  // namespace

// --- forward ------------------------------------------------------------------------------------

/// Rows per block: four if a warp holds one, so that a block has more than a single warp.
template <int kWarps>
constexpr int kNormForwardRows = kWarps == 1 ? 4 : 1;

template <class A, int kWarps, int kOctets, bool kBranch>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kWarps * kNormForwardRows<kWarps>, 1)
    norm_rows(A* sum, A* y, float* stats, const A* residual, const A* branch,
              const float* __restrict__ weight, const float* __restrict__ bias, int64_t N, int C,
              bool centred, float eps) {
  using Place = RowPlace<A, kWarps, kOctets>;
  BAMTRAIN_SHARED(float, mean_scratch, kWarps);
  BAMTRAIN_SHARED(float, square_scratch, kWarps);
  const Place p;
  const int64_t row = static_cast<int64_t>(device::block_index().x) * kNormForwardRows<kWarps> +
                      device::thread_index().x / (32 * kWarps);
  if (row >= N) return;  // whole warps; whole blocks if a row takes several
  const auto over_row = [](float x, float(&scratch)[kWarps]) {
    if constexpr (kWarps == 1) {
      (void)scratch;
      return warp_sum(x);
    } else {
      return block_sum(x, scratch);
    }
  };

  float x[Place::kVectors][kVector<A>] = {}, added[Place::kVectors][kVector<A>];
  BAMTRAIN_UNROLL
  for (int v = 0; v < Place::kVectors; ++v) {
    if (p.column(v) >= C) continue;
    load_vector(x[v], residual + row * C + p.column(v));
    if (kBranch) load_vector(added[v], branch + row * C + p.column(v));
  }
  float total = 0;
  BAMTRAIN_UNROLL
  for (int v = 0; v < Place::kVectors; ++v) {
    if (p.column(v) >= C) continue;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kVector<A>; ++n) {
      // The adjoint reads the rounded sum back, and so differentiates the same function.
      if (kBranch) x[v][n] = rounded_to<A>(x[v][n] + added[v][n]);
      total += x[v][n];
    }
    if (kBranch || sum != residual) store_vector(sum + row * C + p.column(v), x[v]);
  }
  const float mean = centred ? over_row(total, mean_scratch) / static_cast<float>(C) : 0.0f;
  float square = 0;
  BAMTRAIN_UNROLL
  for (int v = 0; v < Place::kVectors; ++v) {
    if (p.column(v) >= C) continue;
    BAMTRAIN_UNROLL
    for (int n = 0; n < kVector<A>; ++n) square += (x[v][n] - mean) * (x[v][n] - mean);
  }
  const float rstd = 1 / sqrtf(over_row(square, square_scratch) / static_cast<float>(C) + eps);
  BAMTRAIN_UNROLL
  for (int v = 0; v < Place::kVectors; ++v) {
    if (p.column(v) >= C) continue;
    float w[kVector<A>], b[kVector<A>] = {};
    load_vector(w, weight + p.column(v));
    if (bias != nullptr) load_vector(b, bias + p.column(v));
    BAMTRAIN_UNROLL
    for (int n = 0; n < kVector<A>; ++n) x[v][n] = (x[v][n] - mean) * rstd * w[n] + b[n];
    store_vector(y + row * C + p.column(v), x[v]);
  }
  if (p.place == 0) {
    stats[2 * row] = mean;
    stats[2 * row + 1] = rstd;
  }
}

template <class A>
device::LaunchStatus norm_forward(const NormForward<A>& f, device::Stream stream) {
  if (const char* why =
          norm_refusal(f.N, f.C, f.sum, f.y, f.stats, f.residual, f.branch, f.weight, f.bias)) {
    return device::refused(why);
  }
  return dispatch_width(f.C, [&]<int kWarps, int kOctets>() {
    constexpr uint32_t kRows = kNormForwardRows<kWarps>;
    const auto start = [&](auto kernel) {
      return device::launch(kernel, grid_of(blocks_of(f.N, kRows)), {32 * kWarps * kRows, 1, 1}, 0,
                            stream, f.sum, f.y, f.stats, f.residual, f.branch, f.weight, f.bias,
                            f.N, f.C, f.kind == NormKind::layernorm, f.eps);
    };
    return f.branch != nullptr ? start(norm_rows<A, kWarps, kOctets, true>)
                               : start(norm_rows<A, kWarps, kOctets, false>);
  });
}

// --- backward -----------------------------------------------------------------------------------

namespace {

constexpr int kNormBackwardWarps = 8;

BAMTRAIN_DEVICE void unpack(float (&x)[4], const Words& v) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < 4; ++n) x[n] = device::float_of(v.w[n]);
}
BAMTRAIN_DEVICE void unpack(float (&x)[8], const Words& v) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < 4; ++n) {
    x[2 * n] = device::low_bf16(v.w[n]);
    x[2 * n + 1] = device::high_bf16(v.w[n]);
  }
}

/// Sums over the threads of a row's warps, one of the block's 8 / kWarps groups. `slots`: one
/// element per warp of the block; a barrier must separate the call from their earlier use.
template <int kWarps>
BAMTRAIN_DEVICE void row_sums(float& a, float& b, float* slots) {
  a = warp_sum(a);
  b = warp_sum(b);
  if constexpr (kWarps > 1) {
    const int thread = static_cast<int>(device::thread_index().x);
    if (thread % 32 == 0) {
      slots[2 * (thread / 32)] = a;
      slots[2 * (thread / 32) + 1] = b;
    }
    device::barrier();
    const float* first = slots + thread / (32 * kWarps) * (2 * kWarps);
    a = first[0];
    b = first[1];
    BAMTRAIN_UNROLL
    for (int w = 1; w < kWarps; ++w) {
      a += first[2 * w];
      b += first[2 * w + 1];
    }
  }
}

/// out (C) = the sum of the groups' `own`, in group order. All threads of the block call.
template <class A, int kWarps, int kOctets>
BAMTRAIN_DEVICE void sum_groups(float* out,
                                const float (&own)[8 * kOctets / kVector<A>][kVector<A>],
                                float* totals, const RowPlace<A, kWarps, kOctets>& p, int C) {
  constexpr int kGroups = kNormBackwardWarps / kWarps;
  const int group = static_cast<int>(device::thread_index().x) / (32 * kWarps);
  for (int g = 0; g < kGroups; ++g) {
    if (g == group) {
      BAMTRAIN_UNROLL
      for (int v = 0; v < p.kVectors; ++v) {
        if (p.column(v) >= C) continue;
        float* total = totals + p.column(v);
        float* to = g == kGroups - 1 ? out + p.column(v) : total;
        BAMTRAIN_UNROLL
        for (int n = 0; n < kVector<A>; n += 4) {
          float x[4] = {};
          if (g > 0) load_vector(x, total + n);
          BAMTRAIN_UNROLL
          for (int k = 0; k < 4; ++k) x[k] += own[v][n + k];
          store_vector(to + n, x);
        }
      }
    }
    device::barrier();
  }
}

}  // namespace

/// dsum += rstd (u - mean(u) - x_hat mean(u x_hat)) with u = dy w, mean(u) for LayerNorm only.
/// partial (2, pieces, C): sums of dy x_hat and of dy over `rows` rows each.
template <class A, int kWarps, int kOctets, bool kBias>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kNormBackwardWarps,
                                       sizeof(A) == 2 && kOctets + kBias < 5 ? 2 : 1)
    norm_rows_backward(A* dsum, float* partial, const A* dy, const A* sum, const float* stats,
                       const float* __restrict__ weight, int64_t N, int C, int64_t rows,
                       bool centred) {
  using Place = RowPlace<A, kWarps, kOctets>;
  constexpr int kGroups = kNormBackwardWarps / kWarps;
  BAMTRAIN_SHARED(float, slots, 2 * 2 * kNormBackwardWarps);
  BAMTRAIN_SHARED(Words, totals, kGroups > 1 ? 64 * kWarps * kOctets : 1);
  const Place p;
  const int64_t piece = device::block_index().x;
  const int64_t begin = piece * rows, end = begin + rows < N ? begin + rows : N;
  const int group = static_cast<int>(device::thread_index().x) / (32 * kWarps);
  const float inverse_C = 1 / static_cast<float>(C);
  float dw[Place::kVectors][kVector<A>] = {};
  float db[Place::kVectors][kVector<A>] = {};

  int parity = 0;  // alternates slots: a warp may be one row ahead of another
  for (int64_t first = begin; first < end; first += kGroups, parity ^= 1) {
    const int64_t row = first + group;
    const bool inside = row < end;
    Words dys[Place::kVectors] = {}, sums[Place::kVectors] = {}, dsums[Place::kVectors] = {};
    float mean = 0, rstd = 0;
    if (inside) {
      BAMTRAIN_UNROLL
      for (int v = 0; v < Place::kVectors; ++v) {
        if (p.column(v) >= C) continue;
        const int64_t at = row * C + p.column(v);
        dys[v] = *reinterpret_cast<const Words*>(dy + at);
        sums[v] = *reinterpret_cast<const Words*>(sum + at);
        dsums[v] = *reinterpret_cast<const Words*>(dsum + at);
      }
      mean = stats[2 * row];
      rstd = stats[2 * row + 1];
    }
    float mean_u = 0, mean_ux = 0;
    BAMTRAIN_UNROLL
    for (int v = 0; v < Place::kVectors; ++v) {
      if (p.column(v) >= C) continue;
      float g[kVector<A>], x[kVector<A>], w[kVector<A>];
      unpack(g, dys[v]);
      unpack(x, sums[v]);
      load_vector(w, weight + p.column(v));
      BAMTRAIN_UNROLL
      for (int n = 0; n < kVector<A>; ++n) {
        const float x_hat = (x[n] - mean) * rstd;
        dw[v][n] += g[n] * x_hat;
        if (kBias) db[v][n] += g[n];
        mean_u += g[n] * w[n];
        mean_ux += g[n] * w[n] * x_hat;
      }
    }
    row_sums<kWarps>(mean_u, mean_ux, slots + parity * 2 * kNormBackwardWarps);
    mean_u = centred ? mean_u * inverse_C : 0.0f;
    mean_ux *= inverse_C;
    if (!inside) continue;
    BAMTRAIN_UNROLL
    for (int v = 0; v < Place::kVectors; ++v) {
      if (p.column(v) >= C) continue;
      float g[kVector<A>], x[kVector<A>], d[kVector<A>], w[kVector<A>];
      unpack(g, dys[v]);
      unpack(x, sums[v]);
      unpack(d, dsums[v]);
      load_vector(w, weight + p.column(v));
      BAMTRAIN_UNROLL
      for (int n = 0; n < kVector<A>; ++n) {
        d[n] += rstd * (g[n] * w[n] - mean_u - (x[n] - mean) * rstd * mean_ux);
      }
      store_vector(dsum + row * C + p.column(v), d);
    }
  }
  float* columns = reinterpret_cast<float*>(totals);
  const int64_t pieces = device::grid_size().x;
  sum_groups(partial + piece * C, dw, columns, p, C);
  if (kBias) sum_groups(partial + (pieces + piece) * C, db, columns, p, C);
}

template <class A>
device::LaunchStatus norm_backward(const NormBackward<A>& g, device::Stream stream) {
  if (const char* why = norm_refusal(g.N, g.C, g.dsum, g.dweight, g.dbias, g.dy, g.sum, g.stats,
                                     g.weight, g.partial)) {
    return device::refused(why);
  }
  const int64_t pieces = norm_backward_pieces(g.N);
  const device::LaunchStatus status = dispatch_width(g.C, [&]<int kWarps, int kOctets>() {
    const auto start = [&](auto kernel) {
      return device::launch(kernel, grid_of(pieces), {32 * kNormBackwardWarps, 1, 1}, 0, stream,
                            g.dsum, g.partial, g.dy, g.sum, g.stats, g.weight, g.N, g.C,
                            norm_backward_rows(g.N), g.kind == NormKind::layernorm);
    };
    return g.dbias != nullptr ? start(norm_rows_backward<A, kWarps, kOctets, true>)
                              : start(norm_rows_backward<A, kWarps, kOctets, false>);
  });
  if (!status.ok()) return status;
  return add_partial_sums(g.dweight, g.dbias, g.partial, pieces, g.C, stream);
}

template device::LaunchStatus norm_forward(const NormForward<float>&, device::Stream);
template device::LaunchStatus norm_forward(const NormForward<bf16>&, device::Stream);
template device::LaunchStatus norm_backward(const NormBackward<float>&, device::Stream);
template device::LaunchStatus norm_backward(const NormBackward<bf16>&, device::Stream);

}  // namespace bamtrain::kernels

#include "ops/cpu/norm.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"
#include "core/parallel.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace rows;

namespace {

constexpr int64_t kForwardRows = 16;
constexpr int64_t kPieces = 64;  // of the rows in the adjoint, for any number of rows

/// Statistics are computed from the sum rounded to A: the adjoint reads the rounded sum back, and
/// so differentiates the same function.
template <class A>
void forward_row(A* sum, A* y, float* stats, const A* residual, const A* branch, const float* w,
                 const float* bias, int64_t C, NormKind kind, float eps) {
  Vec total{};
  for_vectors(C, [&](int64_t c, auto n) {
    Vec x = load(residual + c, n);
    if (branch) x += load(branch + c, n);
    store(sum + c, x, n);
    total += load(sum + c, n);
  });
  const float mean = kind == NormKind::rmsnorm ? 0 : simd::sum(total) / static_cast<float>(C);
  Vec square{};
  for_vectors(C, [&](int64_t c, auto n) {
    Vec x = load(sum + c, n) - mean;
    if (n < kWidth) x = (simd::lanes() < static_cast<int32_t>(n)) ? x : Vec{};
    square += x * x;
  });
  const float rstd = 1 / std::sqrt(simd::sum(square) / static_cast<float>(C) + eps);
  for_vectors(C, [&](int64_t c, auto n) {
    Vec v = (load(sum + c, n) - mean) * rstd * load(w + c, n);
    if (bias) v += load(bias + c, n);
    store(y + c, v, n);
  });
  stats[0] = mean;
  stats[1] = rstd;
}

/// dsum += rstd (u - mean(u) - x_hat mean(u x_hat)), u = dy w; mean(u) only for LayerNorm.
template <class A>
void backward_row(A* dsum, float* dw, float* db, const A* dy, const A* sum, const float* stats,
                  const float* w, int64_t C, NormKind kind) {
  const float mean = stats[0], rstd = stats[1];
  Vec total_u{}, total_ux{};
  for_vectors(C, [&](int64_t c, auto n) {
    const Vec g = load(dy + c, n), x_hat = (load(sum + c, n) - mean) * rstd;
    const Vec u = g * load(w + c, n);  // zero past the row's end, as g is
    total_u += u;
    total_ux += u * x_hat;
    store(dw + c, load(dw + c, n) + g * x_hat, n);
    if (db) store(db + c, load(db + c, n) + g, n);
  });
  const float inverse_C = 1 / static_cast<float>(C);
  const float mean_u = kind == NormKind::rmsnorm ? 0 : simd::sum(total_u) * inverse_C;
  const float mean_ux = simd::sum(total_ux) * inverse_C;
  for_vectors(C, [&](int64_t c, auto n) {
    const Vec x_hat = (load(sum + c, n) - mean) * rstd;
    const Vec u = load(dy + c, n) * load(w + c, n);
    store(dsum + c, load(dsum + c, n) + rstd * (u - mean_u - x_hat * mean_ux), n);
  });
}

}  // namespace

void cpu_norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                      Tensor weight, Tensor bias, NormKind kind, double eps) {
  const int64_t N = sum.shape[0], C = sum.shape[1];
  dispatch_activation(sum.dtype, [&]<class A>() {
    parallel_ranges(N, kForwardRows, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        forward_row<A>(sum.ptr<A>() + n * C, y.ptr<A>() + n * C, stats.ptr<float>() + 2 * n,
                       residual.ptr<A>() + n * C, branch ? branch.ptr<A>() + n * C : nullptr,
                       weight.ptr<float>(), bias ? bias.ptr<float>() : nullptr, C, kind,
                       static_cast<float>(eps));
      }
    });
  });
}

void cpu_norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum,
                       Tensor stats, Tensor weight, NormKind kind, const NormScratch& s) {
  const int64_t N = sum.shape[0], C = sum.shape[1];
  const int64_t per_piece = ceil_div(N, kPieces), pieces = ceil_div(N, per_piece);
  float* partial = s.partial.ptr<float>();
  dispatch_activation(sum.dtype, [&]<class A>() {
    parallel_for(pieces, [&](int64_t piece) {
      float* dw = partial + piece * 2 * C;
      float* db = dbias ? dw + C : nullptr;
      std::fill_n(dw, 2 * C, 0.0f);
      for (int64_t n = piece * per_piece; n < std::min(N, (piece + 1) * per_piece); ++n) {
        backward_row<A>(dsum.ptr<A>() + n * C, dw, db, dy.ptr<A>() + n * C, sum.ptr<A>() + n * C,
                        stats.ptr<float>() + 2 * n, weight.ptr<float>(), C, kind);
      }
    });
  });
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const float* dw = partial + piece * 2 * C;
    for (int64_t c = 0; c < C; ++c) dweight.ptr<float>()[c] += dw[c];
    if (dbias) {
      for (int64_t c = 0; c < C; ++c) dbias.ptr<float>()[c] += dw[C + c];
    }
  }
}

void NormScratch::plan(Arena& arena, const WorkspaceShape& w) {
  if (w.backward) arena.add("scratch.norm", &partial, Dtype::f32, {kPieces, 2, w.C});
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

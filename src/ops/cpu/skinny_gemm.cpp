#include "ops/cpu/skinny_gemm.h"

#include <array>

#include "core/checked.h"
#include "core/parallel.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using rows::dispatch_activation;
using simd::kWidth;
using simd::Vec;

namespace {

constexpr uintptr_t kAhead = 2048;  // prefetch distance in bytes; rows are contiguous

/// By output and row of x.
template <int kOutputs, int kRows>
using Sums = std::array<std::array<Vec, kRows>, kOutputs>;

/// Dot products of kOutputs rows of the weight, `weight_stride` apart, with kRows rows of x.
template <int kOutputs, int kRows, class A>
Sums<kOutputs, kRows> multiply(const A* weight, int64_t weight_stride, const A* x, int64_t stride,
                               int64_t I) {
  Sums<kOutputs, kRows> sums{};
  Sums<kOutputs, kRows> other{};  // of every second vector: additions do not wait for each other
  int64_t c = 0;
  for (; c + 2 * kWidth <= I; c += 2 * kWidth) {
    Vec w0[kOutputs], w1[kOutputs];
    for (int o = 0; o < kOutputs; ++o) {
      const A* const w = weight + o * weight_stride + c;
      simd::prefetch(reinterpret_cast<uintptr_t>(w) + kAhead, 2 * kWidth * sizeof(A));
      w0[o] = simd::load(w);
      w1[o] = simd::load(w + kWidth);
    }
    for (int n = 0; n < kRows; ++n) {
      const Vec x0 = simd::load(x + n * stride + c), x1 = simd::load(x + n * stride + c + kWidth);
      for (int o = 0; o < kOutputs; ++o) {
        sums[o][n] += w0[o] * x0;
        other[o][n] += w1[o] * x1;
      }
    }
  }
  rows::for_vectors(I - c, [&](int64_t d, auto lanes) {
    for (int o = 0; o < kOutputs; ++o) {
      const Vec w = rows::load(weight + o * weight_stride + c + d, lanes);
      for (int n = 0; n < kRows; ++n) sums[o][n] += w * rows::load(x + n * stride + c + d, lanes);
    }
  });
  for (int o = 0; o < kOutputs; ++o) {
    for (int n = 0; n < kRows; ++n) sums[o][n] += other[o][n];
  }
  return sums;
}

/// The outputs [begin, begin + count) of all rows; count <= kWidth.
template <class A, class Y, int kRows>
void multiply_group(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    int64_t begin, int64_t count) {
  const int64_t I = x.shape[1];
  Vec sums[kRows][kWidth] = {};
  const auto form = [&]<int kOutputs>(int64_t first) {
    const auto formed =
        multiply<kOutputs, kRows>(weight.ptr<A>() + (begin + first) * weight.stride[0],
                                  weight.stride[0], x.ptr<A>(), x.stride[0], I);
    for (int o = 0; o < kOutputs; ++o) {
      for (int n = 0; n < kRows; ++n) sums[n][first + o] = formed[o][n];
    }
  };
  // A single row of x is widened once per row of the weight; two weight rows at a time halve that.
  constexpr int kAtOnce = kRows == 1 ? 2 : 1;
  int64_t o = 0;
  for (; o + kAtOnce <= count; o += kAtOnce) form.template operator()<kAtOnce>(o);
  for (; o < count; ++o) form.template operator()<1>(o);
  for (int n = 0; n < kRows; ++n) {
    Y* const to = y.ptr<Y>() + n * y.stride[0] + begin;
    const auto put = [&](int64_t, auto lanes) {
      Vec result = simd::sums_of(sums[n]);
      if (bias) result += rows::load(bias.ptr<float>() + begin, lanes);
      rows::store(to, result, lanes);
    };
    rows::for_vectors(count, put);
  }
}

template <class A, class Y, int kRows>
void multiply_all(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t O = y.shape[1];
  parallel_work_stealing(ceil_div(O, kWidth), [&](int64_t group) {
    const int64_t o = group * kWidth;
    multiply_group<A, Y, kRows>(y, x, weight, bias, o, std::min<int64_t>(kWidth, O - o));
  });
}

template <class A, class Y>
void multiply_rows(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  switch (x.shape[0]) {
    case 1:
      return multiply_all<A, Y, 1>(y, x, weight, bias);
    case 2:
      return multiply_all<A, Y, 2>(y, x, weight, bias);
    case 3:
      return multiply_all<A, Y, 3>(y, x, weight, bias);
    default:
      return multiply_all<A, Y, kSkinnyGemmRows>(y, x, weight, bias);
  }
}

}  // namespace

void cpu_skinny_gemm(Tensor y, Tensor x, Tensor weight, Tensor bias) {
  const auto rows_without_gaps = [](const Tensor& t) {
    return t.rank == 2 && (t.stride[1] == 1 || t.shape[1] == 1);
  };
  require(x.shape[0] >= 1 && x.shape[0] <= kSkinnyGemmRows && x.shape[1] == weight.shape[1] &&
              y.shape[0] == x.shape[0] && y.shape[1] == weight.shape[0],
          "a few rows, and matching shapes of a product");
  require(rows_without_gaps(y) && rows_without_gaps(x) && rows_without_gaps(weight),
          "matrices with contiguous rows");
  dispatch_activation(x.dtype, [&]<class A>() {
    dispatch_activation(y.dtype, [&]<class Y>() { multiply_rows<A, Y>(y, x, weight, bias); });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

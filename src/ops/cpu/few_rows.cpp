#include "ops/cpu/few_rows.h"

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

constexpr uintptr_t kAhead = 2048;  // bytes of the weight, whose rows follow each other
constexpr int kOutputs = 2;         // of a row of x at a time

/// Sums of products of a row of the weight with kRows rows of x, which lie `stride` apart.
template <class A, int kRows>
std::array<Vec, kRows> multiply(const A* weight, const A* x, int64_t stride, int64_t I) {
  std::array<Vec, kRows> sums{};
  std::array<Vec, kRows> other{};  // every second vector's: additions do not wait for each other
  int64_t c = 0;
  for (; c + 2 * kWidth <= I; c += 2 * kWidth) {
    simd::prefetch(reinterpret_cast<uintptr_t>(weight + c) + kAhead, 2 * kWidth * sizeof(A));
    const Vec w0 = simd::load(weight + c), w1 = simd::load(weight + c + kWidth);
    for (int n = 0; n < kRows; ++n) {
      sums[n] += w0 * simd::load(x + n * stride + c);
      other[n] += w1 * simd::load(x + n * stride + c + kWidth);
    }
  }
  rows::for_vectors(I - c, [&](int64_t d, auto lanes) {
    const Vec w = rows::load(weight + c + d, lanes);
    for (int n = 0; n < kRows; ++n) sums[n] += w * rows::load(x + n * stride + c + d, lanes);
  });
  for (int n = 0; n < kRows; ++n) sums[n] += other[n];
  return sums;
}

/// The same of one row of x with rows of the weight `stride` apart, for which it is widened once.
template <class A>
std::array<Vec, kOutputs> multiply_outputs(const A* weight, int64_t stride, const A* x, int64_t I) {
  std::array<Vec, kOutputs> sums{}, other{};
  int64_t c = 0;
  for (; c + 2 * kWidth <= I; c += 2 * kWidth) {
    const Vec x0 = simd::load(x + c), x1 = simd::load(x + c + kWidth);
    for (int o = 0; o < kOutputs; ++o) {
      const A* const w = weight + o * stride + c;
      simd::prefetch(reinterpret_cast<uintptr_t>(w) + kAhead, 2 * kWidth * sizeof(A));
      sums[o] += simd::load(w) * x0;
      other[o] += simd::load(w + kWidth) * x1;
    }
  }
  rows::for_vectors(I - c, [&](int64_t d, auto lanes) {
    const Vec v = rows::load(x + c + d, lanes);
    for (int o = 0; o < kOutputs; ++o) {
      sums[o] += rows::load(weight + o * stride + c + d, lanes) * v;
    }
  });
  for (int o = 0; o < kOutputs; ++o) sums[o] += other[o];
  return sums;
}

/// The outputs [begin, begin + count) of all rows, at most kWidth of them.
template <class A, class Y, int kRows>
void multiply_group(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    int64_t begin, int64_t count) {
  const int64_t I = x.shape[1];
  Vec sums[kRows][kWidth] = {};
  int64_t o = 0;
  if constexpr (kRows == 1) {
    for (; o + kOutputs <= count; o += kOutputs) {
      const auto of_outputs = multiply_outputs<A>(weight.ptr<A>() + (begin + o) * weight.stride[0],
                                                  weight.stride[0], x.ptr<A>(), I);
      for (int n = 0; n < kOutputs; ++n) sums[0][o + n] = of_outputs[static_cast<size_t>(n)];
    }
  }
  for (; o < count; ++o) {
    const auto of_output = multiply<A, kRows>(weight.ptr<A>() + (begin + o) * weight.stride[0],
                                              x.ptr<A>(), x.stride[0], I);
    for (int n = 0; n < kRows; ++n) sums[n][o] = of_output[n];
  }
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
  parallel_stretches(ceil_div(O, kWidth), [&](int64_t group) {
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
      return multiply_all<A, Y, kFewRows>(y, x, weight, bias);
  }
}

}  // namespace

void cpu_linear_of_few_rows(Tensor y, Tensor x, Tensor weight, Tensor bias) {
  const auto rows_without_gaps = [](const Tensor& t) {
    return t.rank == 2 && (t.stride[1] == 1 || t.shape[1] == 1);
  };
  require(x.shape[0] >= 1 && x.shape[0] <= kFewRows && x.shape[1] == weight.shape[1] &&
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

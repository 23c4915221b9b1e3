#include "ops/cpu/head_network.h"

#include "mixes/dape.h"
#include "ops/cpu/gemm_microkernel.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

namespace {

/// sums (M, N) vectors += the lane-wise products of rows of a (M, n) and of b (N, n).
template <int R, int C>
void dots(int64_t n, const float* a, const float* b, float* sums, int64_t N) {
  Vec total[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) total[r][c] = simd::load(sums + (r * N + c) * simd::kWidth);
  }
  for (int64_t j = 0; j < n; j += simd::kWidth) {
    Vec x[C];
    for (int c = 0; c < C; ++c) x[c] = simd::load(b + c * kMixStride + j);
    for (int r = 0; r < R; ++r) {
      const Vec y = simd::load(a + r * kMixStride + j);
      for (int c = 0; c < C; ++c) total[r][c] += y * x[c];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) simd::store(sums + (r * N + c) * simd::kWidth, total[r][c]);
  }
}

template <int R>
void dots_of_rows(int64_t n, const float* a, const float* b, float* sums, int64_t N) {
  constexpr int C = simd::kRegisters == 32 ? 5 : 3;
  int64_t c = 0;
  for (; c + C <= N; c += C) dots<R, C>(n, a, b + c * kMixStride, sums + c * simd::kWidth, N);
  for (; c < N; ++c) dots<R, 1>(n, a, b + c * kMixStride, sums + c * simd::kWidth, N);
}

void all_dots(int64_t n, int64_t M, const float* a, int64_t N, const float* b, float* sums) {
  constexpr int R = simd::kRegisters == 32 ? 4 : 3;
  int64_t m = 0;
  for (; m + R <= M; m += R) {
    dots_of_rows<R>(n, a + m * kMixStride, b, sums + m * N * simd::kWidth, N);
  }
  for (; m < M; ++m) {
    dots_of_rows<1>(n, a + m * kMixStride, b, sums + m * N * simd::kWidth, N);
  }
}

}  // namespace

HeadNetwork::HeadNetwork(const HeadMix& mix, MixForm form, Pieces& pieces, bool backward)
    : mix_(mix), form_(form) {
  w1_ = pieces.take(F_ * (I_ + 1));
  w2_ = pieces.take(H_ * (F_ + 1));
  u_ = pieces.take((I_ + 1) * kMixStride);
  hidden_ = pieces.take((F_ + 1) * kMixStride);
  f_ = pieces.take(H_ * kMixStride);
  const auto pack = [](float* to, const Tensor& w, const Tensor& c) {
    const int64_t columns = w.shape[1];
    for (int64_t r = 0; r < w.shape[0]; ++r, to += columns + 1) {
      std::copy_n(w.ptr<float>() + r * columns, columns, to);
      to[columns] = c.ptr<float>()[r];
    }
  };
  pack(w1_, mix.w1, mix.c1);
  pack(w2_, mix.w2, mix.c2);
  std::fill_n(u_ + I_ * kMixStride, kMixStride, 1.0f);
  std::fill_n(hidden_ + F_ * kMixStride, kMixStride, 1.0f);
  if (!backward) return;
  db_ = pieces.take(H_ * kMixStride);
  dhidden_ = pieces.take(F_ * kMixStride);
  du_ = pieces.take(I_ * kMixStride);
  sums_ = pieces.take(weights(H_, F_, I_) * simd::kWidth);
}

void HeadNetwork::read(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B) {
  const auto copy = [n](float* to, const float* from) {
    for (int64_t j = 0; j < n; j += simd::kWidth) simd::store(to + j, simd::load(from + j));
  };
  for (int64_t h = 0; h < H_; ++h) {
    float* const u = u_ + h * kMixStride;
    switch (form_) {
      case MixForm::concat:
      case MixForm::concat_residual:
        copy(u, x.of(h));
        copy(u + H_ * kMixStride, B.of(h));
        break;
      case MixForm::add_residual:
        for (int64_t j = 0; j < n; j += simd::kWidth) {
          simd::store(u + j, simd::load(x.of(h) + j) + simd::load(B.of(h) + j));
        }
        break;
      case MixForm::bias_only:
        copy(u, B.of(h));
        break;
    }
  }
}

/// The hidden layer before its activation.
void HeadNetwork::hidden_layer(int64_t n) {
  tile::product<false>(F_, padded(n), I_ + 1, {w1_, I_ + 1, 1}, u_, kMixStride, hidden_,
                       kMixStride);
}

void HeadNetwork::forward(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B) {
  read(n, x, B);
  hidden_layer(n);
  constexpr auto kSlope = static_cast<float>(kDapeSlope);
  for (int64_t k = 0; k < F_; ++k) {
    float* const v = hidden_ + k * kMixStride;
    for (int64_t j = 0; j < n; j += simd::kWidth) {
      const Vec y = simd::load(v + j);
      simd::store(v + j, simd::max(kSlope * y, y));  // NaN stays NaN
    }
  }
  tile::product<false>(H_, padded(n), F_ + 1, {w2_, F_ + 1, 1}, hidden_, kMixStride, f_,
                       kMixStride);
  for (int64_t h = 0; keeps_bias(form_) && h < H_; ++h) {
    float* const f = f_ + h * kMixStride;
    for (int64_t j = 0; j < n; j += simd::kWidth) {
      simd::store(f + j, simd::load(f + j) + simd::load(B.of(h) + j));
    }
  }
}

void HeadNetwork::backward(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B) {
  read(n, x, B);
  hidden_layer(n);
  const int64_t whole = padded(n);
  tile::product<false>(F_, whole, H_, {w2_, 1, F_ + 1}, db_, kMixStride, dhidden_, kMixStride);
  constexpr auto kSlope = static_cast<float>(kDapeSlope);
  for (int64_t k = 0; k < F_; ++k) {
    float *const v = hidden_ + k * kMixStride, *const d = dhidden_ + k * kMixStride;
    for (int64_t j = 0; j < n; j += simd::kWidth) {
      const Vec y = simd::load(v + j), dy = simd::load(d + j);
      simd::store(d + j, y > 0.0f ? dy : kSlope * dy);
      simd::store(v + j, simd::max(kSlope * y, y));
    }
  }
  all_dots(whole, F_, dhidden_, I_ + 1, u_, sums_);
  all_dots(whole, H_, db_, F_ + 1, hidden_, sums_ + F_ * (I_ + 1) * simd::kWidth);
  tile::product<false>(I_, whole, F_, {w1_, 1, I_ + 1}, dhidden_, kMixStride, du_, kMixStride);
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

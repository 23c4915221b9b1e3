#pragma once
// HeadMix in the CPU attention, on blocks of consecutive keys of one row: products of its weights
// with the values of all heads, one register of keys at a time.

#include <algorithm>
#include <cstdint>

#include "mixes/dape.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Maximum number of keys per call of a network.
constexpr int64_t kMixKeys = 256;
/// Row stride of a network's buffers: not a power of two, so that rows do not share few cache sets.
constexpr int64_t kMixStride = kMixKeys + simd::kWidth;

/// Values of all heads and of consecutive keys: (H, keys).
struct HeadsOfKeys {
  float* data;
  int64_t stride;  // from one head to the next

  float* of(int64_t h) const { return data + h * stride; }
  HeadsOfKeys from(int64_t n) const { return {data + n, stride}; }
};

/// The network of one task; it uses that task's scratch.
class HeadNetwork {
 public:
  /// Maximum scratch of a network of F hidden units.
  static int64_t floats(int64_t H, int64_t F, bool backward) {
    const int64_t I = 2 * H, keys = kMixStride;
    const int64_t forward = weights(H, F, I) + (I + 1 + F + 1 + H) * keys;
    const int64_t more = weights(H, F, I) * simd::kWidth + (H + F + I) * keys;
    return forward + (backward ? more : 0) + 16 * simd::kWidth;
  }
  /// Elements of gradients(), c1 and c2 included.
  static int64_t weights(int64_t H, int64_t F, int64_t I) { return F * (I + 1) + H * (F + 1); }

  HeadNetwork(const HeadMix& mix, Pieces& pieces, bool backward);

  /// The output of forward().
  HeadsOfKeys biases() const { return {f_, kMixStride}; }
  /// Reads scores x and biases B of n <= kMixKeys keys; both in whole vectors.
  void forward(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B);

  void clear_gradients() { std::fill_n(sums_, weights(H_, F_, I_) * simd::kWidth, 0.0f); }
  /// The gradients of the biases: input of the next backward().
  HeadsOfKeys dbiases() const { return {db_, kMixStride}; }
  /// Adds to the network's gradients, and sets of_scores() and of_bias(), the gradients of its
  /// inputs.
  void backward(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B);
  /// The gradients of the scores, null if they are 0, and of B in addition to dbiases().
  const float* of_scores(int64_t h) const {
    return mix_.form == MixForm::bias_only ? nullptr : du_ + h * kMixStride;
  }
  const float* of_bias(int64_t h) const { return du_ + (I_ > H_ ? H_ + h : h) * kMixStride; }
  /// The sums so far: rows of w1, each followed by its c1, then rows of w2, each followed by its
  /// c2.
  void gradients(float* to) const {
    for (int64_t n = 0; n < weights(H_, F_, I_); ++n) {
      to[n] = simd::sum(simd::load(sums_ + n * simd::kWidth));
    }
  }

 private:
  void read(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B);
  void hidden_layer(int64_t n);

  const HeadMix& mix_;
  const int64_t H_ = mix_.w2.shape[0], F_ = mix_.hidden(), I_ = mix_.w1.shape[1];
  float *w1_, *w2_;  // (F, I + 1), (H, F + 1): with c1 and c2 as the last column
  // (I + 1, keys), (F + 1, keys): a layer's input, with a row of ones at the end; (H, keys)
  float *u_, *hidden_, *f_;
  float *db_ = nullptr, *dhidden_ = nullptr, *du_ = nullptr;  // (H, F, I; keys)
  float* sums_ = nullptr;                                     // (weights) vectors
};

namespace network {

/// sums (M, N) vectors += the lane-wise products of rows of a (M, n) and of b (N, n).
template <int R, int C>
inline void dots(int64_t n, const float* a, const float* b, float* sums, int64_t N) {
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
inline void dots_of_rows(int64_t n, const float* a, const float* b, float* sums, int64_t N) {
  constexpr int C = simd::kRegisters == 32 ? 5 : 3;
  int64_t c = 0;
  for (; c + C <= N; c += C) dots<R, C>(n, a, b + c * kMixStride, sums + c * simd::kWidth, N);
  for (; c < N; ++c) dots<R, 1>(n, a, b + c * kMixStride, sums + c * simd::kWidth, N);
}

inline void all_dots(int64_t n, int64_t M, const float* a, int64_t N, const float* b, float* sums) {
  constexpr int R = simd::kRegisters == 32 ? 4 : 3;
  int64_t m = 0;
  for (; m + R <= M; m += R) {
    dots_of_rows<R>(n, a + m * kMixStride, b, sums + m * N * simd::kWidth, N);
  }
  for (; m < M; ++m) {
    dots_of_rows<1>(n, a + m * kMixStride, b, sums + m * N * simd::kWidth, N);
  }
}

}  // namespace network

inline HeadNetwork::HeadNetwork(const HeadMix& mix, Pieces& pieces, bool backward) : mix_(mix) {
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

inline void HeadNetwork::read(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B) {
  const auto copy = [n](float* to, const float* from) {
    for (int64_t j = 0; j < n; j += simd::kWidth) simd::store(to + j, simd::load(from + j));
  };
  for (int64_t h = 0; h < H_; ++h) {
    float* const u = u_ + h * kMixStride;
    switch (mix_.form) {
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
inline void HeadNetwork::hidden_layer(int64_t n) {
  tile::product<false>(F_, padded(n), I_ + 1, {w1_, I_ + 1, 1}, u_, kMixStride, hidden_,
                       kMixStride);
}

inline void HeadNetwork::forward(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B) {
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
  for (int64_t h = 0; keeps_bias(mix_.form) && h < H_; ++h) {
    float* const f = f_ + h * kMixStride;
    for (int64_t j = 0; j < n; j += simd::kWidth) {
      simd::store(f + j, simd::load(f + j) + simd::load(B.of(h) + j));
    }
  }
}

inline void HeadNetwork::backward(int64_t n, const HeadsOfKeys& x, const HeadsOfKeys& B) {
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
  network::all_dots(whole, F_, dhidden_, I_ + 1, u_, sums_);
  network::all_dots(whole, H_, db_, F_ + 1, hidden_, sums_ + F_ * (I_ + 1) * simd::kWidth);
  tile::product<false>(I_, whole, F_, {w1_, 1, I_ + 1}, dhidden_, kMixStride, du_, kMixStride);
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

#pragma once
// HeadMix in the CPU attention, on blocks of consecutive keys of one row: products of its weights
// with the values of all heads, one register of keys at a time.

#include <algorithm>

#include "ops/cpu/attention_strips.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Maximum number of keys per call of a network.
constexpr int64_t kMixKeys = 256;
/// Row stride of a network's buffers: not a power of two, so that rows do not share few cache sets.
constexpr int64_t kMixStride = kMixKeys + simd::kWidth;

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

  HeadNetwork(const HeadMix& mix, MixForm form, Pieces& pieces, bool backward);

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
    return form_ == MixForm::bias_only ? nullptr : du_ + h * kMixStride;
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
  const MixForm form_;
  const int64_t H_ = mix_.w2.shape[0], F_ = mix_.hidden(), I_ = mix_.w1.shape[1];
  float *w1_, *w2_;  // (F, I + 1), (H, F + 1): with c1 and c2 as the last column
  // (I + 1, keys), (F + 1, keys): a layer's input, with a row of ones at the end; (H, keys)
  float *u_, *hidden_, *f_;
  float *db_ = nullptr, *dhidden_ = nullptr, *du_ = nullptr;  // (H, F, I; keys)
  float* sums_ = nullptr;                                     // (weights) vectors
};

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

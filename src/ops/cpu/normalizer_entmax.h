#pragma once
// alpha-entmax of whole rows; the names are those of normalizers/entmax.h. The root delta of
//
//   sum_j (delta - c_j)_+^(1/a) = 1
//
// is found by passes over the row whose number depends on its logits alone.

#include <algorithm>
#include <cmath>

#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_row_sums.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace row {

constexpr float kConverged = 2e-7f;  // of delta, relative: about a rounding
constexpr int kMostPasses = 64;

/// x^power where x > 0, else 0. Errors: about 1e-7 |power| (1 + |log x|), relative.
inline Vec power_of(Vec x, float power) {
  constexpr float kSmallest = 1e-35f;
  const Vec y = simd::exp(power * simd::log(simd::max(x, simd::splat(kSmallest))));
  const Vec of_nan = x == x ? y : x;
  return x <= 0.0f ? Vec{} : of_nan;
}

/// Calls f(j, x) with x = delta - c for every vector of a row; not positive: outside the support.
template <class F>
inline void for_roots(const float* c, int64_t n, float delta, F&& f) {
  for_vectors(n, [&](int64_t j) { f(j, delta - simd::load(c + j)); });
}

/// Sums over the support.
struct Moments {
  float count = 0, first = 0, second = 0;  // of 1, x and x^2

  Moments(const float* c, int64_t n, float delta) {
    Vec ones{}, sum{}, squares{};
    for_roots(c, n, delta, [&](int64_t, Vec x) {
      const Vec inside = x > 0.0f ? x : Vec{};
      ones += x > 0.0f ? simd::splat(1) : Vec{};
      sum += inside;
      squares += inside * inside;
    });
    count = simd::sum(ones);
    first = simd::sum(sum);
    second = simd::sum(squares);
  }
};

/// alpha 2: each step solves for the current nonzero keys, which from delta = 1 on only shrink.
inline float solve_linear(const float* c, int64_t n) {
  float delta = 1;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const Moments of(c, n, delta);
    const float step = (1 - of.first) / of.count;
    delta += step;
    if (!(std::abs(step) > kConverged * delta)) break;
  }
  return delta;
}

/// alpha 1.5: likewise, by a quadratic; where that has no root the support is far too large, and
/// Newton's step shrinks it.
inline float solve_quadratic(const float* c, int64_t n) {
  float delta = 1;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const Moments of(c, n, delta);
    const float discriminant = of.first * of.first - of.count * (of.second - 1);
    // The root (-first + sqrt(discriminant)) / count without its cancellation.
    const float step = discriminant >= 0 ? (1 - of.second) / (of.first + std::sqrt(discriminant))
                                         : (1 - of.second) / (2 * of.first);
    delta += step;
    if (!(std::abs(step) > kConverged * delta)) break;
  }
  return delta;
}

/// 1 < alpha < 2: Newton's method for the norm (sum x^(1/a))^a = 1, which is convex in delta: from
/// delta = 1 it falls towards the root.
inline float solve_convex(const float* c, int64_t n, float a) {
  float delta = 1;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    Vec sum{}, slope{};
    for_roots(c, n, delta, [&](int64_t, Vec x) {
      const Vec p = power_of(x, 1 / a);
      sum += p;
      slope += x > 0.0f ? p / x : Vec{};
    });
    const float F = simd::sum(sum), G = simd::sum(slope) / a;
    const float step = std::expm1(-a * std::log(F)) * F / (a * G);
    delta += step;
    if (!(std::abs(step) > kConverged * delta)) break;
  }
  return delta;
}

/// [1 - c / delta]_+; 1 for c = 0 whatever delta.
inline Vec root_of(Vec c, float inverse_delta) {
  const Vec x = 1.0f - c * inverse_delta;
  return c == 0.0f ? simd::splat(1) : x;
}

/// alpha > 2: the sum rises without bound where a key enters the support, so that w is found by
/// halving. 1 / delta past fp32 leaves the keys whose logit is the largest.
inline float solve_by_halving(const float* c, int64_t n, int64_t keys, float a) {
  float low = 1 / static_cast<float>(keys), high = 1;
  for (int pass = 0; pass < kMostPasses && high - low > kConverged * high; ++pass) {
    const float w = 0.5f * (low + high);
    const float inverse = std::min(std::pow(w, -a), std::numeric_limits<float>::max());
    Vec sum{};
    for_vectors(
        n, [&](int64_t j) { sum += w * power_of(root_of(simd::load(c + j), inverse), 1 / a); });
    (simd::sum(sum) >= 1 ? high : low) = w;
  }
  return high;
}

class EntmaxRows final : public RowNormalizer {
 public:
  explicit EntmaxRows(const Attention& a) : alphas_(a.alphas) {
    set_alpha(static_cast<float>(a.form.normalizer.alpha));
  }

  void set_head(int64_t h) override {
    if (alphas_) set_alpha(alphas_.ptr<float>()[h]);
  }

  void weights(float* z, int64_t n, SavedRow& saved) const override {
    saved.level = maximum(z, n);
    distances(z, n, saved.level);
    if (a_ > 1) {
      saved.threshold = solve_by_halving(z, n, n, a_);
    } else {
      const float delta = a_ == 1      ? solve_linear(z, n)
                          : a_ == 0.5f ? solve_quadratic(z, n)
                                       : solve_convex(z, n, a_);
      saved.threshold = std::pow(delta, 1 / a_);
    }
    form<false>(z, nullptr, n, saved.threshold);
  }

  void recall(float* z, float* u, int64_t n, const SavedRow& saved) const override {
    distances(z, n, saved.level);
    form<true>(z, u, n, saved.threshold);
  }

  int64_t support(const float* z, int64_t n, const SavedRow& saved) const override {
    const float inverse = inverse_delta(saved.threshold);
    simd::IVec count{};
    for_vectors(n, [&](int64_t j) {
      count -= root_of(a_ * (saved.level - simd::load(z + j)), inverse) > 0.0f;
    });
    return sum(count);
  }

  float adjoint(float* dp, const float* p, const float* u, int64_t n) const override {
    if (!alphas_) {
      centred(dp, u, n);
      return 0;
    }
    if (Entmax::takes_slopes(a_)) {
      centred(dp, u, n);
      Vec sum{};
      for_vectors(n, [&](int64_t j) {
        sum += simd::load(dp + j) *
               of_alpha(a_ * simd::log(simd::max(simd::splat(kLeastLogarithm), simd::load(p + j))));
      });
      return simd::sum(sum) / (a_ * a_);
    }
    Vec value{}, entropy{}, weighted{};
    for_vectors(n, [&](int64_t j) {
      const Vec q = simd::load(p + j), d = simd::load(dp + j);
      const Vec h = entropy_term(q);
      value += q * d;
      entropy += h;
      weighted += h * d;
    });
    const float D = centred(dp, u, n);
    return (simd::sum(value) - D) / (a_ * a_) + (simd::sum(weighted) - D * simd::sum(entropy)) / a_;
  }

 private:
  void set_alpha(float alpha) { a_ = alpha - 1; }

  /// g of normalizers/entmax.h.
  static Vec of_alpha(Vec y) {
    return y > Entmax::kNearZero ? Entmax::near_zero(y) : simd::exp(y) * (1.0f - y) - 1.0f;
  }

  /// For the weight w of the largest logit; past fp32 only logits that equal it are inside.
  float inverse_delta(float w) const {
    return std::min(std::pow(w, -a_), std::numeric_limits<float>::max());
  }

  /// c in place of z.
  void distances(float* z, int64_t n, float m) const {
    for_vectors(n, [&](int64_t j) { simd::store(z + j, a_ * (m - simd::load(z + j))); });
  }

  /// p in place of c, and u.
  template <bool kSlopes>
  void form(float* z, float* u, int64_t n, float w) const {
    const float inverse = inverse_delta(w);
    Vec sum{};
    for_vectors(n, [&](int64_t j) {
      const Vec x = root_of(simd::load(z + j), inverse);  // p^a / delta
      const Vec inside = x > 0.0f ? x : x != x ? x : Vec{};
      const Vec p = a_ == 1      ? w * inside
                    : a_ == 0.5f ? w * inside * inside
                                 : w * power_of(inside, 1 / a_);
      simd::store(z + j, p);
      sum += p;
      if constexpr (kSlopes) simd::store(u + j, inside > 0.0f ? slope(p, inside / inverse) : Vec{});
    });
    // Steep rows: p moves by more than a rounding of w.
    if (a_ > 1) scale(z, n, 1 / simd::sum(sum));
  }

  /// u = p^(2 - alpha); x = p^a.
  Vec slope(Vec p, Vec x) const {
    constexpr float kPower = Entmax::kPowerAlpha - 1;
    if (a_ == 1) return simd::splat(1);
    if (a_ == 0.5f) return x;
    if (a_ < 1) return p / x;
    if (a_ <= kPower) {
      return power_of(simd::max(p, simd::splat(static_cast<float>(Entmax::kSmallestWeight))),
                      1 - a_);
    }
    return power_of(simd::max(x, simd::splat(static_cast<float>(Entmax::kSmallestRoot))),
                    (1 - a_) / a_);
  }

  Tensor alphas_;
  float a_ = 0.5f;  // alpha - 1
};

inline EntmaxRows rows_of(Entmax, const Attention& a) { return EntmaxRows(a); }

}  // namespace row
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

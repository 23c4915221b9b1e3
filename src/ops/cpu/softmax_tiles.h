#pragma once
// Softmax of tiles, online while keys come by, and its adjoint: a template of the bias.

#include <cmath>

#include "ops/cpu/attention_operands.h"
#include "ops/cpu/bias.h"
#include "ops/cpu/bias_tokens.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// The running softmax of a tile of queries.
struct Running {
  // Sums are of weights exp(z - base). A row's base is at least its largest logit minus kSlack. It
  // follows the maximum only when that has grown by more. So most tiles need no maximum of a row,
  // and no sum across a vector before the end.
  float* out;   // (kQ, Dp), weighted values
  float* base;  // (kQ)
  float* sums;  // (kQ, kWidth), of the weights, by lane
  int64_t Dp;
  static constexpr float kSlack = 8;

  static int64_t floats(int64_t Dp) { return kQ * (Dp + 1 + simd::kWidth); }
  Running(float* memory, int64_t channels) : out(memory), Dp(channels) {
    base = out + kQ * Dp;
    sums = base + kQ;
  }

  void begin() const {
    std::fill_n(out, kQ * Dp, 0.0f);
    std::fill_n(base, kQ, kMinusInfinity);
    std::fill_n(sums, kQ * simd::kWidth, 0.0f);
  }
  /// From row r on.
  Running from(int64_t r) const {
    Running rest = *this;
    rest.out += r * Dp;
    rest.base += r;
    rest.sums += r * simd::kWidth;
    return rest;
  }
  /// Moves row r to a larger base.
  void raise(int64_t r, float to) const {
    const float keep = std::exp(base[r] - to);
    base[r] = to;
    row::scale(sums + r * simd::kWidth, simd::kWidth, keep);
    row::scale(out + r * Dp, Dp, keep);
  }
  /// Divides a row's sum of values by its sum of weights; returns lse.
  float end(int64_t r) const {
    const float sum = simd::sum(simd::load(sums + r * simd::kWidth)), inverse = 1 / sum;
    for (int64_t c = 0; c < Dp; ++c) out[r * Dp + c] *= inverse;
    return base[r] + std::log(sum);
  }
};

// Biases in registers. Of a row: bias(n), of a vector of keys; factor, of the bias where kScaled;
// and weighted(n, e), exp(z) from exp of the logit with bias().

/// No bias.
struct NoLanes {
  static constexpr bool kScaled = false;
  explicit NoLanes(NoBias&) {}
  void set(const Block&, const RowFactors&) {}
  struct Row {
    Vec bias(int64_t) const { return Vec{}; }
    Vec weighted(int64_t, Vec e) const { return e; }
  };
  Row row(const Block&, int64_t) const { return {}; }
};

/// A bias that is formed in memory. kScaled_: it is multiplied by a factor of the row.
template <bool kScaled_>
class FormedLanes {
 public:
  static constexpr bool kScaled = kScaled_;
  explicit FormedLanes(LogitBias& bias) : bias_(bias) {}
  void set(const Block& scores, const RowFactors& f) {
    formed_ = bias_.form(scores);
    factors_ = f.bias;
  }
  struct Row {
    const float* data;
    float factor;
    Vec bias(int64_t n) const { return simd::load(data + n); }
    Vec weighted(int64_t, Vec e) const { return e; }
  };
  Row row(const Block& x, int64_t i) const {
    const int64_t r = i - x.i0;
    return {formed_.data + r * formed_.row_stride, kScaled ? factors_[r] : 1.0f};
  }

 private:
  LogitBias& bias_;
  BiasRows formed_ = {};
  const float* factors_ = nullptr;
};

/// A formula of numbers of tokens.
template <class Of, bool kScaled_>
class TokenLanes {
  // Whether exp(z) is computed as exp(s) exp(b), if exp(b) needs no logarithm. Row maxima are then
  // over s.
  static constexpr bool kWeighted = !kScaled_ && requires(Vec x) {
    Of::template exponential<VectorMath>(x, x, x);
  };

 public:
  static constexpr bool kScaled = kScaled_;
  explicit TokenLanes(const TokenRows<Of>& numbers) : numbers_(numbers) {}
  void set(const Block&, const RowFactors& f) { factors_ = f.bias; }
  struct Row {
    const TokenRows<Of>& numbers;
    Vec of_row;
    int64_t i, j0;
    float factor;
    Vec bias(int64_t n) const {
      if constexpr (kWeighted) return Vec{};
      return numbers.keys(of_row, i, j0 + n).bias();
    }
    Vec weighted(int64_t n, Vec e) const {
      if constexpr (kWeighted) return e * numbers.keys(of_row, i, j0 + n).exponential();
      return e;
    }
  };
  Row row(const Block& x, int64_t i) const {
    return {numbers_, numbers_.of_row(i), i, x.j0, kScaled ? factors_[i - x.i0] : 1.0f};
  }

 private:
  const TokenRows<Of>& numbers_;
  const float* factors_ = nullptr;
};

/// What a row of the backward pass reads and adds to, by row of a tile.
struct AdjointRows {
  const float *lse, *D;  // D_i = <dO_i, out_i>
  float* dscale;         // += sum dz b where the bias is scaled
};

/// z of scores, the row's factor of them, and its biases.
template <class Lanes>
inline Vec logit(Vec s, Vec factor, const typename Lanes::Row& row, Vec b) {
  if constexpr (Lanes::kScaled) return s * factor + row.factor * b;
  return s * factor + b;
}

class SoftmaxTiles {
 public:
  virtual ~SoftmaxTiles() = default;
  /// Scores of a tile become weights relative to the rows' bases, which are raised where they have
  /// to; stored as put_weights() does.
  virtual void forward(const Block& x, const RowFactors& f, const Running& run, const Sight& sight,
                       bool in_two) = 0;
  /// Scores in p and dP in dz become weights and dz.
  virtual void backward(const Block& p, const Block& dz, const RowFactors& f,
                        const AdjointRows& rows, const Sight& sight) = 0;
};

template <class Lanes>
class SoftmaxTilesOf final : public SoftmaxTiles {
 public:
  template <class Bias>
  explicit SoftmaxTilesOf(Bias& bias) : lanes_(bias) {}

  void forward(const Block& x, const RowFactors& f, const Running& run, const Sight& sight,
               bool in_two) override {
    lanes_.set(x, f);
    const bool all_visible = sight.whole(x.i0, x.i1, x.j0);
    for (int64_t i = x.i0; i < x.i1; ++i) {
      const int64_t r = i - x.i0;
      float* const row = x.at(i, x.j0);
      const auto of_row = lanes_.row(x, i);
      const Vec factor = simd::splat(f.content[r]);
      Vec z[kV];
      // Once, or twice where the base has to follow: so the logits need not outlive a call.
      for (;;) {
        Vec highest = simd::splat(kMinusInfinity);
        for (int64_t v = 0; v < kV; ++v) {
          const int64_t n = v * simd::kWidth;
          z[v] = logit<Lanes>(simd::load(row + n), factor, of_row, of_row.bias(n));
          if (!all_visible) {
            const auto seen = visible(x.j0 + n, sight.first(i), sight.last(i));
            z[v] = seen ? z[v] : simd::splat(kMinusInfinity);
          }
          highest = simd::max(z[v], highest);  // passes over NaN
        }
        if (!simd::any_above(highest, simd::splat(run.base[r] + Running::kSlack))) break;
        run.raise(r, simd::maximum(highest));
      }
      const float base = run.base[r];
      Vec total = simd::load(run.sums + r * simd::kWidth);
      const auto weight = [&](int64_t v) {
        return of_row.weighted(v * simd::kWidth, simd::exp_up_to_88(z[v] - base));
      };
      Vec p[kV];
      if (all_visible && base != kMinusInfinity) [[likely]] {
        for (int64_t v = 0; v < kV; ++v) p[v] = weight(v);
      } else {
        // A row without a base has seen no key yet, or only keys whose logits are NaN. Such a logit
        // becomes the weight. Next to numbers, NaN reaches the row by its exponential.
        for (int64_t v = 0; v < kV; ++v) {
          p[v] = base == kMinusInfinity ? z[v] : weight(v);
          p[v] = z[v] == kMinusInfinity ? Vec{} : p[v];
        }
      }
      for (int64_t v = 0; v < kV; ++v) total += p[v];
      simd::store(run.sums + r * simd::kWidth, total);
      put_weights(row, p, in_two);
    }
  }

  void backward(const Block& p, const Block& dz, const RowFactors& f, const AdjointRows& rows,
                const Sight& sight) override {
    lanes_.set(p, f);
    const bool all_visible = sight.whole(p.i0, p.i1, p.j0);
    for (int64_t i = p.i0; i < p.i1; ++i) {
      const int64_t r = i - p.i0;
      float *const p_row = p.at(i, p.j0), *const dz_row = dz.at(i, p.j0);
      const auto of_row = lanes_.row(p, i);
      const Vec factor = simd::splat(f.content[r]);
      const bool one = sight.alone(i);  // one visible key: p = 1 and dz = 0 exactly
      const float alone = one ? 0.0f : 1.0f;
      Vec dscale{};
      for (int64_t v = 0; v < kV; ++v) {
        const int64_t n = v * simd::kWidth;
        const Vec b = of_row.bias(n);
        const Vec z = logit<Lanes>(simd::load(p_row + n), factor, of_row, b);
        Vec prob = of_row.weighted(n, simd::exp(z - rows.lse[r]));
        if (!all_visible) {
          prob = visible(p.j0 + n, sight.first(i), sight.last(i)) ? (one ? simd::splat(1.0f) : prob)
                                                                  : Vec{};
        }
        const Vec d = prob * (simd::load(dz_row + n) - rows.D[r]) * alone;
        // Where no key is visible, the bias may be anything.
        if constexpr (Lanes::kScaled) dscale += d == 0.0f ? Vec{} : d * b;
        simd::store(p_row + n, prob);
        simd::store(dz_row + n, d);
      }
      if constexpr (Lanes::kScaled) rows.dscale[r] += simd::sum(dscale);
    }
  }

 private:
  Lanes lanes_;
};

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

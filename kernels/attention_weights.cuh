#pragma once
// Weights of attention's rows and their slopes, from what the forward pass saved. The formulas are
// in normalizers/entmax.h, topk.h and stick_breaking.h. kExact: the library's exponentials, for
// fp32; else those of the hardware where weights become bf16.

#include "attention.h"
#include "device.cuh"
#include "normalizers/entmax.h"

namespace bamtrain::kernels {

constexpr float kLog2e = 1.44269504f;
constexpr float kLn2 = 0.69314718f;
constexpr float kMinusInfinity = -INFINITY;

template <bool kExact>
BAMTRAIN_DEVICE float exponential(float x) {
  return kExact ? expf(x) : device::exp2_approx(x * kLog2e);
}
template <bool kExact>
BAMTRAIN_DEVICE float logarithm(float x) {
  return kExact ? logf(x) : device::log2_approx(x) * kLn2;
}

/// log(1 + e^z) and the logistic function of z.
struct Stick {
  float rest, share;  // -log(1 - share)
};
template <bool kExact>
BAMTRAIN_DEVICE Stick stick_of(float z) {
  const float e = exponential<kExact>(-fabsf(z)), positive = fmaxf(z, 0.0f);
  const float sum = 1.0f + e;
  const float more =
      kExact ? logf(sum) + (e - (sum - 1.0f)) / sum : device::log2_approx(sum) * kLn2;
  return {positive + more, exponential<kExact>(fminf(z, 0.0f) - more)};
}

/// x^power where x > 0, 0 where it is not, NaN of NaN.
template <bool kExact>
BAMTRAIN_DEVICE float power_of(float x, float power) {
  const float least = fmaxf(x, 1e-35f);
  const float y =
      kExact ? expf(power * logf(least)) : device::exp2_approx(power * device::log2_approx(least));
  return x > 0 ? y : x != x ? x : 0.0f;
}

/// x^power of a row's numbers, for which fp32's errors times a power of up to 1000 are too large.
BAMTRAIN_DEVICE float exact_power(float x, float power) {
  return static_cast<float>(exp(static_cast<double>(power) * log(static_cast<double>(x))));
}

/// The forms of a row's weights, each with arithmetic of its own.
enum class WeightForm { softmax, topk, entmax_1_5, entmax_2, entmax, stick_breaking };

/// Whether weights are exp(z - level), so that D of their gradients is <dO, out>.
BAMTRAIN_HD constexpr bool is_exponential(WeightForm form) {
  return form == WeightForm::softmax || form == WeightForm::topk;
}
/// Whether they are that of every key: the level is all that there is to search.
BAMTRAIN_HD constexpr bool is_of_level(WeightForm form) {
  return is_exponential(form) && form != WeightForm::topk;
}

BAMTRAIN_DEVICE float alpha_of(const NormalizerInputs& n, int h) {
  return n.alphas != nullptr ? n.alphas[h] : n.alpha;
}
BAMTRAIN_DEVICE WeightForm weight_form(const NormalizerInputs& n, int h) {
  switch (n.kind) {
    case NormalizerKind::softmax:
      return WeightForm::softmax;
    case NormalizerKind::topk:
      return WeightForm::topk;
    case NormalizerKind::stick_breaking:
      return WeightForm::stick_breaking;
    case NormalizerKind::entmax:
      break;
  }
  const float alpha = alpha_of(n, h);
  return alpha == 1.5f   ? WeightForm::entmax_1_5
         : alpha == 2.0f ? WeightForm::entmax_2
                         : WeightForm::entmax;
}

/// f.operator()<kForm>(). Not for stick-breaking, whose weights are no function of a logit and its
/// row's numbers: nothing is called.
template <class F>
BAMTRAIN_DEVICE void with_weight_form(WeightForm form, const F& f) {
  switch (form) {
    case WeightForm::softmax:
      return f.template operator()<WeightForm::softmax>();
    case WeightForm::topk:
      return f.template operator()<WeightForm::topk>();
    case WeightForm::entmax_1_5:
      return f.template operator()<WeightForm::entmax_1_5>();
    case WeightForm::entmax_2:
      return f.template operator()<WeightForm::entmax_2>();
    case WeightForm::entmax:
      return f.template operator()<WeightForm::entmax>();
    case WeightForm::stick_breaking:
      return;
  }
}

/// A weight, and u of dz = u (dP - D).
struct Weight {
  float p, u;
};

/// Whether a forward pass divides weights by their sum: those with the largest logit as the level,
/// and of steep rows, whose weights move by more than a rounding of the largest.
BAMTRAIN_DEVICE bool divided_by_sum(WeightForm form, float a) {
  return is_exponential(form) || (form == WeightForm::entmax && a > 1);
}

/// A row's numbers, for any normalizer but stick-breaking.
struct RowWeights {
  float level = 0, threshold = 0;  // as in SavedRows
  // entmax: delta = threshold^(alpha - 1) with alpha 1.5 and 2, else 1 / delta. topk: the bits of
  // SavedRows::last
  float third = 1;
  float a = 0;  // entmax: alpha - 1

  RowWeights() = default;
  BAMTRAIN_DEVICE RowWeights(const NormalizerInputs& n, const SavedRows& saved, int h,
                             int64_t row) {
    level = saved.level[row];
    if (n.kind == NormalizerKind::topk) {
      threshold = saved.threshold[row];
      set_last(saved.last[row]);
    }
    if (n.kind == NormalizerKind::entmax) {
      threshold = saved.threshold[row];
      set_entmax(alpha_of(n, h) - 1.0f);
    }
  }
  /// After threshold.
  BAMTRAIN_DEVICE void set_entmax(float alpha_less_one) {
    a = alpha_less_one;
    constexpr float kLargest = 5e36f;  // times a of 63 still finite
    third = a == 0.5f ? sqrtf(threshold) : a == 1.0f ? threshold : exact_power(threshold, -a);
    third = third > kLargest ? kLargest : third;  // NaN stays
  }
  BAMTRAIN_DEVICE void set_last(int last) { third = device::float_of(static_cast<uint32_t>(last)); }
  BAMTRAIN_DEVICE int last() const { return static_cast<int>(device::bits_of(third)); }

  /// Of key j. Logits that are minus infinity have none.
  template <WeightForm kForm, bool kExact>
  BAMTRAIN_DEVICE Weight of(float z, int j) const {
    if constexpr (is_exponential(kForm)) {
      const bool dropped = kForm == WeightForm::topk && drops(z, j);
      const float p = dropped ? 0.0f : exponential<kExact>(z - level);
      return {p, p};
    } else if constexpr (kForm == WeightForm::entmax_1_5) {
      const float x = positive(fmaf(0.5f, z - level, third));
      return {x * x, x};
    } else if constexpr (kForm == WeightForm::entmax_2) {
      const float x = positive(z - level + third);
      return {x, x > 0 ? 1.0f : 0.0f};
    } else {
      // 1 - c / delta; 1 at the largest logit, where c is 0, whatever delta is: third is finite.
      const float root = positive(fmaf(z - level, a * third, 1.0f));
      const float p = threshold * power_of<kExact>(root, 1.0f / a);
      return {p, root > 0 ? slope<kExact>(p, kExact ? root / third : root * (1.0f / third)) : 0.0f};
    }
  }

  /// Whether topk gives key j no weight. NaN is kept.
  BAMTRAIN_DEVICE bool drops(float z, int j) const {
    return z < threshold || (z == threshold && j > last());
  }
  /// SavedRows::level of a search, given the sum of the weights.
  BAMTRAIN_DEVICE float level_of(WeightForm form, float sum) const {
    return is_exponential(form) ? level + logf(sum) : level;
  }
  /// What a forward pass multiplies weights by, given their sum.
  BAMTRAIN_DEVICE float factor_of(WeightForm form, float sum) const {
    return divided_by_sum(form, a) ? 1.0f / sum : 1.0f;
  }
  /// x, or NaN in a row with a logit that is not a number.
  BAMTRAIN_DEVICE float nan_or(float x) const { return level != level ? level : x; }

 private:
  /// [x]_+; NaN stays.
  BAMTRAIN_DEVICE static float positive(float x) { return x != x ? x : fmaxf(x, 0.0f); }
  /// p^(2 - alpha); x = p^a.
  template <bool kExact>
  BAMTRAIN_DEVICE float slope(float p, float x) const {
    constexpr auto kPower = static_cast<float>(Entmax::kPowerAlpha - 1);
    constexpr auto kLeastWeight = static_cast<float>(Entmax::kSmallestWeight);
    constexpr auto kLeastRoot = static_cast<float>(Entmax::kSmallestRoot);
    if (kExact && a < 1) return p / x;
    const bool of_weight = a <= kPower;
    return power_of<kExact>(of_weight ? fmaxf(p, kLeastWeight) : fmaxf(x, kLeastRoot),
                            of_weight ? 1.0f - a : (1.0f - a) / a);
  }
};

/// What is made weights, slope z + offset of a logit z.
struct WeightLine {
  float slope = 1, offset = 0;
};

/// The same numbers as kernels on tiles use them, which fold `line` into the product that gives a
/// logit; kExact: but take logits as they are, whose differences from the level lose nothing. Rows
/// with a logit that is not a number have weights that are: see nan_or().
struct LineWeights {
  // softmax: p = 2^x. entmax: [x]_+ is the root of p with alpha 1.5, p with 2, the root of p /
  // threshold with another up to 2. topk, which compares logits, and entmax with alpha > 2, where
  // 1 / delta may be huge, take logits as they are: offset is that of 2^x, or the level.
  float slope = 1, offset = 0;
  float threshold = 0, third = 1;  // as in RowWeights

  LineWeights() = default;
  BAMTRAIN_DEVICE LineWeights(WeightForm form, const RowWeights& w, bool exact)
      : threshold(w.threshold), third(w.third) {
    if (exact) {
      offset = w.level;
      return;
    }
    switch (form) {
      case WeightForm::softmax:
        slope = kLog2e;
        [[fallthrough]];
      case WeightForm::topk:
        offset = -kLog2e * w.level;
        break;
      case WeightForm::entmax_1_5:
        slope = 0.5f;
        offset = fmaf(-0.5f, w.level, third);
        break;
      case WeightForm::entmax_2:
        offset = third - w.level;
        break;
      case WeightForm::entmax:
        slope = takes_logits(form, w.a, false) ? 1.0f : w.a * third;
        offset = takes_logits(form, w.a, false) ? w.level : fmaf(-slope, w.level, 1.0f);
        break;
      case WeightForm::stick_breaking:
        break;
    }
  }
  BAMTRAIN_DEVICE static bool takes_logits(WeightForm form, float a, bool exact) {
    return exact || form == WeightForm::topk || (form == WeightForm::entmax && a > 1);
  }
  BAMTRAIN_DEVICE WeightLine line(bool takes_logits) const {
    return {slope, takes_logits ? 0.0f : offset};
  }

  /// Of what `line` gives for a logit that drop_ties() does not drop.
  template <WeightForm kForm, bool kExact>
  BAMTRAIN_DEVICE Weight of(float x, float a) const {
    if constexpr (kExact) {
      return row_weights(a).template of<kForm, true>(x, 0);
    } else if constexpr (kForm == WeightForm::softmax) {
      const float p = device::exp2_approx(x);
      return {p, p};
    } else if constexpr (kForm == WeightForm::topk) {
      const float e = device::exp2_approx(fmaf(kLog2e, x, offset)), p = x < threshold ? 0.0f : e;
      return {p, p};
    } else if constexpr (kForm == WeightForm::entmax_1_5) {
      const float root = fmaxf(x, 0.0f);
      return {root * root, root};
    } else if constexpr (kForm == WeightForm::entmax_2) {
      return {fmaxf(x, 0.0f), x > 0 ? 1.0f : 0.0f};
    } else if (takes_logits(kForm, a, false)) {
      return row_weights(a).template of<kForm, false>(x, 0);
    } else {
      const float log_root = device::log2_approx(fmaxf(x, 0.0f)), power = 1.0f / a;
      return {threshold * device::exp2_approx(power * log_root),
              threshold * third * device::exp2_approx((power - 1.0f) * log_root)};
    }
  }
  /// topk: whether of a row that sees keys up to i some from j on with the threshold itself have no
  /// weight.
  BAMTRAIN_DEVICE bool cuts_ties(int i, int j) const {
    const int last = static_cast<int>(device::bits_of(third));
    return j > last && last < i;
  }
  /// Whether that is so of key j.
  BAMTRAIN_DEVICE bool drops_tie(float z, int j) const {
    return z == threshold && j > static_cast<int>(device::bits_of(third));
  }
  /// x, or NaN in a row with a logit that is not a number.
  BAMTRAIN_DEVICE float nan_or(float x) const { return offset != offset ? offset : x; }

 private:
  /// Where logits are taken as they are and the offset is the level.
  BAMTRAIN_DEVICE RowWeights row_weights(float a) const {
    RowWeights w;
    w.level = offset;
    w.threshold = threshold;
    w.third = third;
    w.a = a;
    return w;
  }
};

/// Sums over a row from which D and the gradient of alpha follow.
struct RowSums {
  float p = 0, p_dp = 0, u = 0, u_dp = 0;
  float h = 0, h_dp = 0;  // with h = u g or -p log p: normalizers/entmax.h

  /// What centre() needs.
  BAMTRAIN_DEVICE void add_slope(const Weight& w, float dp) {
    u += w.u;
    u_dp += w.u * dp;
  }
  /// a: alpha - 1 of entmax, whose alpha is learned; 0: it is not.
  template <bool kExact>
  BAMTRAIN_DEVICE void add(const Weight& w, float dp, float a) {
    add_slope(w, dp);
    p += w.p;
    p_dp += w.p * dp;
    if (!(a > 0 && w.p > 0)) return;
    const float log_p = logarithm<kExact>(w.p), y = a * log_p;
    float of_p = -w.p * log_p;
    if (Entmax::takes_slopes(a)) {
      const float g =
          y > Entmax::kNearZero ? Entmax::near_zero(y) : exponential<kExact>(y) * (1.0f - y) - 1.0f;
      of_p = w.u * g;
    }
    h += of_p;
    h_dp += of_p * dp;
  }
  /// Over neighbouring lanes, a power of two. All lanes of the warp call.
  template <int kLanes>
  BAMTRAIN_DEVICE void join() {
    float* const all[] = {&p, &p_dp, &u, &u_dp, &h, &h_dp};
    BAMTRAIN_UNROLL
    for (float* x : all) {
      BAMTRAIN_UNROLL
      for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        *x += device::shuffle_xor(device::kWholeWarp, *x, distance);
      }
    }
  }
  /// D of dz = u (dP - D).
  BAMTRAIN_DEVICE float centre() const { return u > 0 ? u_dp / u : 0.0f; }
  /// What weights are multiplied by.
  BAMTRAIN_DEVICE float factor(WeightForm form, float a) const {
    return divided_by_sum(form, a) ? 1.0f / p : 1.0f;
  }
  /// dalpha of entmax (normalizers/entmax.h), of weights times `factor`.
  BAMTRAIN_DEVICE float dalpha(float a, float factor) const {
    if (Entmax::takes_slopes(a)) return (h_dp - centre() * h) / (a * a);
    const float value = factor * p_dp, less = factor == 1.0f ? 0.0f : logf(factor);
    const float entropy = factor * (h - less * p), weighted = factor * (h_dp - less * p_dp);
    return (value - centre()) / (a * a) + (weighted - centre() * entropy) / a;
  }
};

}  // namespace bamtrain::kernels

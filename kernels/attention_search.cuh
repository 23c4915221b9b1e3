#pragma once
// The search for a row's level and threshold, by passes over its logits: each pass hands every
// logit to accumulate(), joins what the lanes of the row have, and advances. How many passes a row
// takes depends on its logits alone. What is sought is in RowWeights; entmax' names are those of
// normalizers/entmax.h.
//
//   extremes   the largest and the smallest logit
//   solve      entmax: delta, or the weight of the largest logit. topk: the K-th largest logit
//   ties       topk, where more keys have that logit than are kept: which is the last
//   sum        softmax, topk: the sum of exp(z - m), and the last of the smallest logits in it

#include "attention_weights.cuh"

namespace bamtrain::kernels {

enum class SearchPhase { extremes, solve, ties, sum, done };

constexpr float kConverged = 2e-7f;  // of delta, relative: about a rounding
constexpr int kMostPasses = 64;      // of entmax

/// Integers in the order of floats that are not NaN, and back. -0 counts as 0.
BAMTRAIN_DEVICE int32_t ordered(float x) {
  const auto bits = static_cast<int32_t>(device::bits_of(x + 0.0f));
  return bits < 0 ? INT32_MIN - bits : bits;
}
BAMTRAIN_DEVICE float unordered(int32_t n) {
  return device::float_of(static_cast<uint32_t>(n < 0 ? INT32_MIN - n : n));
}

/// The largest integer of a row that at least `wanted` of its integers reach, in [low, high).
struct Selection {
  int32_t low, high;
  int wanted;
  int from_low, from_high;  // how many integers reach low, and high

  BAMTRAIN_DEVICE uint32_t span() const {
    return static_cast<uint32_t>(high) - static_cast<uint32_t>(low);
  }
  /// The n-th quarter of the range.
  BAMTRAIN_DEVICE int32_t quarter(uint32_t n) const {
    const uint32_t s = span();
    return static_cast<int32_t>(static_cast<uint32_t>(low) + s / 4 * n + s % 4 * n / 4);
  }
  /// counts[n]: how many integers reach quarter n + 1. Whether low is what was sought, or tells the
  /// wanted integers from the others.
  BAMTRAIN_DEVICE bool narrow(const int (&counts)[3]) {
    const int32_t quarters[] = {quarter(1), quarter(2), quarter(3)};
    BAMTRAIN_UNROLL
    for (int n = 0; n < 3; ++n) {
      if (counts[n] >= wanted && quarters[n] >= low) {
        low = quarters[n];
        from_low = counts[n];
      }
    }
    BAMTRAIN_UNROLL
    for (int n = 2; n >= 0; --n) {
      if (counts[n] < wanted && quarters[n] < high) {
        high = quarters[n];
        from_high = counts[n];
      }
    }
    return finished();
  }
  BAMTRAIN_DEVICE bool finished() const { return from_low == wanted || span() <= 1; }
};

class RowSearch {
 public:
  SearchPhase phase = SearchPhase::done;
  float level = 0, threshold = 0;
  int last = 0;

  RowSearch() = default;
  /// Row i of head h, which sees `keys` keys, in a sequence of T tokens. No keys: nothing is done.
  BAMTRAIN_DEVICE RowSearch(const NormalizerInputs& n, WeightForm form, int h, int i, int keys,
                            int T)
      : form_(form), i_(i), keys_(keys) {
    if (n.kind == NormalizerKind::entmax) a_ = alpha_of(n, h) - 1.0f;
    if (keys <= 0 || form == WeightForm::stick_breaking) return;
    phase = SearchPhase::extremes;
    if (form == WeightForm::topk) selection_.wanted = static_cast<int>(n.keys.of(keys, T));
    clear();
  }

  BAMTRAIN_DEVICE bool done() const { return phase == SearchPhase::done; }
  /// What was sought, when done.
  BAMTRAIN_DEVICE RowWeights weights() const {
    RowWeights found;
    found.level = level;
    found.threshold = threshold;
    found.last = last;
    if (a_ > 0) found.set_entmax(a_);
    return found;
  }

  /// for_logits(f): f(z, j) for the logits that this lane has; minus infinity: not seen.
  template <class ForLogits>
  BAMTRAIN_DEVICE void accumulate(const ForLogits& for_logits) {
    switch (phase) {
      case SearchPhase::extremes:
        for_logits([&](float z, int) {
          sums_[0] = fmaxf(sums_[0], z);
          if (z > kMinusInfinity) sums_[1] = fmaxf(sums_[1], -z);
          if (z != z) sums_[2] = 1;
        });
        return;
      case SearchPhase::solve:
        return form_ == WeightForm::topk
                   ? count(for_logits, [](float z, int) { return ordered(z); })
                   : accumulate_entmax(for_logits);
      case SearchPhase::ties:
        return count(for_logits, [&](float z, int j) { return z == threshold ? -j : INT32_MIN; });
      case SearchPhase::sum:
        for_logits([&](float z, int j) {
          const bool kept =
              form_ != WeightForm::topk || z > threshold || (z == threshold && j <= last) || z != z;
          if (!kept) return;
          sums_[0] += exponential<true>(z - level);
          take_smallest(-z, j);
        });
        return;
      case SearchPhase::done:
        return;
    }
  }

  /// Whether a tile's largest logit of the row leaves any of its keys to look at again.
  BAMTRAIN_DEVICE bool alive(float largest) const {
    if (keys_ <= 0 || largest == kMinusInfinity) return false;
    if (phase == SearchPhase::extremes || form_ == WeightForm::softmax) return true;
    if (form_ == WeightForm::topk) return !(largest < bound_);
    // At the largest logit whatever delta is, which may be too small for a float.
    return largest == level || !(bound_ - a_ * (level - largest) <= 0);
  }

  /// Over neighbouring lanes, a power of two. All lanes of the warp call.
  template <int kLanes>
  BAMTRAIN_DEVICE void join() {
    BAMTRAIN_UNROLL
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      BAMTRAIN_UNROLL
      for (int n = 0; n < 3; ++n) {
        const float other = device::shuffle_xor(device::kWholeWarp, sums_[n], distance);
        const int more = device::shuffle_xor(device::kWholeWarp, counts_[n], distance);
        if (phase == SearchPhase::sum && n == 1) {
          take_smallest(other, more);
        } else {
          sums_[n] = phase == SearchPhase::extremes ? fmaxf(sums_[n], other) : sums_[n] + other;
          counts_[n] += more;
        }
      }
    }
  }

  /// After a pass.
  BAMTRAIN_DEVICE void advance() {
    switch (phase) {
      case SearchPhase::extremes:
        begin();
        break;
      case SearchPhase::solve:
        if (form_ == WeightForm::topk) {
          if (selection_.narrow(counts_)) end_selection();
          bound_ = unordered(selection_.low);
        } else {
          step();
        }
        break;
      case SearchPhase::ties:
        if (selection_.narrow(counts_)) {
          last = -selection_.low;
          phase = SearchPhase::sum;
        }
        break;
      case SearchPhase::sum:
        level += logf(sums_[0]);
        phase = SearchPhase::done;
        if (form_ == WeightForm::topk) {
          threshold = -sums_[1];
          last = counts_[1];
        }
        break;
      case SearchPhase::done:
        break;
    }
    clear();
  }

 private:
  BAMTRAIN_DEVICE void clear() {
    const float none = phase == SearchPhase::extremes ? kMinusInfinity : 0.0f;
    BAMTRAIN_UNROLL
    for (int n = 0; n < 3; ++n) {
      sums_[n] = none;
      counts_[n] = 0;
    }
    if (phase == SearchPhase::sum) sums_[1] = kMinusInfinity;
  }

  /// Of the negative of a logit, and its key.
  BAMTRAIN_DEVICE void take_smallest(float x, int j) {
    if (x < sums_[1] || (x == sums_[1] && j <= counts_[1])) return;
    sums_[1] = x;
    counts_[1] = j;
  }

  template <class ForLogits, class Integer>
  BAMTRAIN_DEVICE void count(const ForLogits& for_logits, const Integer& integer_of) {
    const int32_t first = selection_.quarter(1), second = selection_.quarter(2),
                  third = selection_.quarter(3);
    for_logits([&](float z, int j) {
      const int32_t x = integer_of(z, j);
      counts_[0] += x >= first;
      counts_[1] += x >= second;
      counts_[2] += x >= third;
    });
  }

  /// After the extremes.
  BAMTRAIN_DEVICE void begin() {
    level = sums_[0];
    last = i_;
    if (sums_[2] > 0) {  // NaN: so are all weights
      level = threshold = bound_ = level + NAN;
      phase = SearchPhase::done;
      return;
    }
    if (form_ == WeightForm::softmax) {
      phase = SearchPhase::sum;
      return;
    }
    phase = SearchPhase::solve;
    if (form_ == WeightForm::topk) {
      bound_ = -sums_[1];
      selection_.low = ordered(-sums_[1]);
      selection_.high = ordered(level) + 1;
      selection_.from_low = keys_;
      selection_.from_high = 0;
      if (selection_.finished()) end_selection();
    } else if (a_ > 1) {
      low_ = 1.0f / static_cast<float>(keys_);
      x_ = 0.5f * (low_ + high_);
    }
  }

  /// The threshold is found; where more keys have just that, so must the last of them be.
  BAMTRAIN_DEVICE void end_selection() {
    threshold = unordered(selection_.low);
    if (selection_.from_low == selection_.wanted) {
      phase = SearchPhase::sum;
      return;
    }
    phase = SearchPhase::ties;
    selection_.from_low -= selection_.from_high;
    selection_.wanted -= selection_.from_high;
    selection_.from_high = 0;
    selection_.low = -i_;
    selection_.high = -(i_ - keys_);
  }

  template <class ForLogits>
  BAMTRAIN_DEVICE void accumulate_entmax(const ForLogits& for_logits) {
    if (a_ > 1) {
      RowWeights weights;
      weights.level = level;
      weights.threshold = x_;
      weights.set_entmax(a_);
      for_logits([&](float z, int j) { sums_[0] += weights.of<WeightForm::entmax, true>(z, j).p; });
    } else if (form_ == WeightForm::entmax) {
      for_logits([&](float z, int) {
        const float x = x_ - a_ * (level - z);
        if (!(x > 0)) return;
        const float p = power_of(x, 1.0f / a_);
        sums_[0] += p;
        sums_[1] += p / x;
      });
    } else {
      for_logits([&](float z, int) {
        const float x = fmaxf(x_ - a_ * (level - z), 0.0f);
        sums_[0] += x;
        sums_[1] += x * x;
        counts_[0] += x > 0;
      });
    }
  }

  /// One step of entmax; x_ is delta, or with alpha > 2 the weight of the largest logit.
  BAMTRAIN_DEVICE void step() {
    ++passes_;
    if (a_ > 1) {
      // The sum rises without bound where a key enters the support: by halving.
      if (sums_[0] >= 1) {
        high_ = x_;
      } else {
        low_ = x_;
      }
      x_ = 0.5f * (low_ + high_);
      bound_ = exact_power(high_, a_);
      if (passes_ >= kMostPasses || !(high_ - low_ > kConverged * high_)) finish(high_);
      return;
    }
    float change;
    if (form_ == WeightForm::entmax) {
      // Newton's method for the norm (sum x^(1/a))^a = 1, which is convex in delta: from delta = 1
      // it falls towards the root.
      change = (exact_power(sums_[0], 1.0f - a_) - sums_[0]) / sums_[1];
    } else if (a_ == 1.0f) {
      // Each step solves for the support at hand, which from delta = 1 on only shrinks.
      change = (1.0f - sums_[0]) / static_cast<float>(counts_[0]);
    } else {
      // Likewise, by a quadratic, (-first + sqrt(discriminant)) / count without its cancellation;
      // where that has no root the support is far too large, and Newton's step shrinks it.
      const float first = sums_[0], second = sums_[1];
      const float discriminant = first * first - static_cast<float>(counts_[0]) * (second - 1.0f);
      change = (1.0f - second) / (discriminant >= 0 ? first + sqrtf(discriminant) : 2.0f * first);
    }
    x_ += change;
    bound_ = x_;
    if (passes_ >= kMostPasses || !(fabsf(change) > kConverged * x_)) {
      finish(a_ == 0.5f ? x_ * x_ : a_ == 1.0f ? x_ : exact_power(x_, 1.0f / a_));
    }
  }
  BAMTRAIN_DEVICE void finish(float weight) {
    threshold = weight;
    phase = SearchPhase::done;
  }

  WeightForm form_ = WeightForm::softmax;
  int i_ = 0, keys_ = 0, passes_ = 0;
  float a_ = 0, x_ = 1, low_ = 0, high_ = 1;
  float bound_ = 1;  // entmax: an upper bound of delta. topk: a lower one of the threshold
  Selection selection_ = {};
  float sums_[3] = {};
  int counts_[3] = {};
};

}  // namespace bamtrain::kernels

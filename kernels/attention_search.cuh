#pragma once
// The search for a row's level and threshold, by passes over its logits: each pass hands every
// logit to accumulate(), joins what the lanes of the row have, and advances. How many passes a row
// takes depends on its logits alone. What is sought is in RowWeights; entmax' names are those of
// normalizers/entmax.h.
//
//   extremes   the largest logit, which is the level; for topk the smallest too, and where there
//              is room the largest of groups of keys, of which the K-th largest is a lower bound
//   solve      entmax: delta, or the weight of the largest logit. topk: the K-th largest logit
//   list       topk: the few logits among which the K-th is, where there is room to list them
//   ties       topk, where more keys have that logit than are kept: which is the last
//
// A pass for delta lists the logits that may have weight: once they have room, what is left to
// solve takes no pass.
//
// One class, past 400 lines: entmax and topk share a row's registers and the order of passes.

#include "attention_selection.cuh"

namespace bamtrain::kernels {

enum class SearchPhase { extremes, solve, list, ties, done };

/// Of delta, relative: about a rounding; and where weights become bf16.
template <bool kExact>
constexpr float kConverged = kExact ? 2e-7f : 2e-4f;
/// Where weights become bf16, how far from 1 their sum may be feared after the last step: half a
/// rounding. Many keys at the edge of a support make a short step of delta a large one of the sum.
constexpr float kMostFeared = 2e-3f;
/// From where on it is not feared to be as far off as it is, but as two ways to 1 are apart.
constexpr float kMostFitted = 0.02f;
constexpr int kMostPasses = 64;   // of entmax
constexpr int kFittedPasses = 8;  // of those, by steps that nothing is proved of
/// Up to which multiple of the delta of a pass it lists logits: what comes of it may be larger.
constexpr float kListed = 1.08f;
/// Of topk, how many keys a row keeps at most where the search begins with groups.
constexpr int kMostOfGroups = 48;

class RowSearch {
  /// With these forms passes for delta take roots of weights, where not kExact.
  BAMTRAIN_DEVICE static constexpr bool takes_roots(WeightForm form) {
    return form == WeightForm::entmax_1_5 || form == WeightForm::entmax_2;
  }

 public:
  SearchPhase phase = SearchPhase::done;
  // Of softmax and topk the level is the largest logit. Of topk the threshold may be between the
  // smallest logit that is kept and the largest that is not: see find_smallest(). Of entmax it is
  // delta while that is sought, or with alpha > 2 the weight of the largest logit.
  float level = 0, threshold = 1;

  RowSearch() = default;
  /// Row i of head h, which sees `keys` keys, in a sequence of T tokens. No keys: nothing is done.
  /// `selection`: the thread's own, which the search of topk works in.
  BAMTRAIN_DEVICE RowSearch(const NormalizerInputs& n, WeightForm form, int h, int i, int keys,
                            int T, Selection* selection, LogitList list = {})
      : list_(list), selection_(selection), form_(form), i_(i), keys_(keys) {
    if (n.kind == NormalizerKind::entmax) a_ = alpha_of(n, h) - 1.0f;
    if (form == WeightForm::topk) *selection = {-i, 0, 0, 0, 0, kMinusInfinity};
    if (list.own != nullptr) list.clear();
    if (list.own != nullptr && form == WeightForm::topk) list.clear_groups();
    if (keys <= 0 || form == WeightForm::stick_breaking) return;
    phase = SearchPhase::extremes;
    if (form == WeightForm::topk) selection_->wanted = static_cast<int>(n.keys.of(keys, T));
    clear();
  }

  BAMTRAIN_DEVICE bool done() const { return phase == SearchPhase::done; }
  /// Whether all logits that matter are listed: what follows is accumulate_listed().
  BAMTRAIN_DEVICE bool listed() const { return listed_ && !done(); }
  /// What the next pass takes of a logit, where not kExact: of entmax 1.5 and 2 the root of its
  /// weight once delta is sought.
  BAMTRAIN_DEVICE WeightLine line() const {
    if (phase != SearchPhase::solve || !takes_roots(form_)) return {};
    const float slope = form_ == WeightForm::entmax_2 ? 1.0f : 0.5f;
    return {slope, fmaf(-slope, level, threshold)};
  }

  /// What was sought, when done.
  BAMTRAIN_DEVICE RowWeights weights() const {
    RowWeights found;
    found.level = level;
    found.threshold = threshold;
    if (form_ == WeightForm::topk) found.set_last(-selection_->low);
    if (a_ > 0) found.set_entmax(a_);
    return found;
  }

  /// for_logits(f): f(z, j) for the logits that this lane has; minus infinity: not seen. Where
  /// there is a list, `passes` counts this one, and `part` says which of the row these are. Returns
  /// whether any of them, from what is known now, may have weight.
  template <WeightForm kForm, bool kExact, class ForLogits>
  BAMTRAIN_DEVICE bool accumulate(const ForLogits& for_logits, int passes = 0, int part = 0) {
    if (phase == SearchPhase::extremes) {
      float largest = kMinusInfinity;
      for_logits([&](float z, int) {
        largest = fmaxf(largest, z);
        sums_[1] += z;  // tells whether any is NaN
        if (kForm == WeightForm::topk && z > kMinusInfinity) sums_[2] = fmaxf(sums_[2], -z);
      });
      if constexpr (kForm == WeightForm::topk && !kExact) list_.add_to_groups(for_logits, part);
      sums_[0] = fmaxf(sums_[0], largest);
      if (is_exponential(kForm)) return keys_ > 0;
      return keys_ > 0 && reaches(largest, sums_[0]);
    }
    if constexpr (kForm == WeightForm::topk) {
      return accumulate_topk<kExact>(for_logits);
    } else if constexpr (is_of_level(kForm)) {
      return keys_ > 0;
    } else if (kForm == WeightForm::entmax && a_ > 1) {
      return accumulate_steep<kExact>(for_logits);
    } else {
      if (phase != SearchPhase::solve) return keys_ > 0;
      const float before = sums_[0];
      accumulate_entmax<kForm, kExact>(for_logits);
      if constexpr (!kExact) {
        if (lists(passes)) list_.add(for_logits, least_listed<kForm>());
      }
      // A delta that has proved too small leaves out some that may yet have weight.
      return sums_[0] > before || threshold * (1.0f + 4e-6f) < bound_;
    }
  }

  /// The same of the lane's part of the list.
  template <WeightForm kForm>
  BAMTRAIN_DEVICE void accumulate_listed() {
    const auto for_listed = [&](const auto& f) { list_.each(f); };
    if constexpr (kForm == WeightForm::topk) {
      accumulate_topk<false>(for_listed);
    } else if constexpr (takes_roots(kForm)) {
      // What is listed are roots with the delta of that pass.
      accumulate_entmax<kForm, false>([&](const auto& f) {
        list_.each([&](float root, int j) { f(root + (threshold - list_.delta()), j); });
      });
    } else if constexpr (!is_of_level(kForm)) {
      accumulate_entmax<kForm, false>(for_listed);
    }
  }

  /// topk, when done: makes the smallest logit that is kept the threshold, where a list has it.
  /// Whether it is that. All lanes of the warp call.
  BAMTRAIN_DEVICE bool find_smallest() {
    float smallest = INFINITY;
    if (listed_) {
      list_.each([&](float z, int) { smallest = z >= threshold ? fminf(smallest, z) : smallest; });
    }
    smallest = fminf(smallest, device::shuffle_xor(device::kWholeWarp, smallest, 1));
    smallest = fminf(smallest, device::shuffle_xor(device::kWholeWarp, smallest, 2));
    if (listed_) threshold = smallest;
    return listed_ || selection_->span() == 0;
  }

  /// topk with a list, after the extremes: as many of the groups' largest logits as a row keeps are
  /// at least the bound that is found, and so are as many logits. All lanes of the warp call.
  BAMTRAIN_DEVICE void begin_with_groups() {
    Selection of_groups = *selection_;
    const int32_t low = of_groups.low;
    BAMTRAIN_NO_UNROLL
    for (int n = 0; n < 4; ++n) {  // to 1 / 256 of what there is between the extremes
      const int32_t at[] = {of_groups.quarter_of_floats(1), of_groups.quarter_of_floats(2),
                            of_groups.quarter_of_floats(3)};
      const float from[] = {unordered(at[0]), unordered(at[1]), unordered(at[2])};
      float counts[3] = {};
      for (int g = 0; g < LogitList::kGroups; ++g) {
        const float z = list_.slot(g);
        BAMTRAIN_UNROLL
        for (int k = 0; k < 3; ++k) counts[k] += z >= from[k] ? 1.0f : 0.0f;
      }
      BAMTRAIN_UNROLL
      for (int k = 0; k < 3; ++k) {
        counts[k] += device::shuffle_xor(device::kWholeWarp, counts[k], 1);
        counts[k] += device::shuffle_xor(device::kWholeWarp, counts[k], 2);
      }
      of_groups.narrow(at, counts);
    }
    if (phase != SearchPhase::solve || of_groups.low == low || of_groups.wanted > kMostOfGroups)
      return;
    begin_list(unordered(of_groups.low));
  }

  /// Over neighbouring lanes, a power of two. All lanes of the warp call.
  template <int kLanes>
  BAMTRAIN_DEVICE void join() {
    if (list_.own != nullptr) {
      whole_ = list_.whole();
      if (form_ == WeightForm::topk) {
        float left_out = phase == SearchPhase::list ? selection_->left_out : kMinusInfinity;
        left_out = fmaxf(left_out, device::shuffle_xor(device::kWholeWarp, left_out, 1));
        left_out = fmaxf(left_out, device::shuffle_xor(device::kWholeWarp, left_out, 2));
        if (phase == SearchPhase::list) count_listed(left_out);
      }
    }
    BAMTRAIN_UNROLL
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      BAMTRAIN_UNROLL
      for (int n = 0; n < 3; ++n) {
        const float other = device::shuffle_xor(device::kWholeWarp, sums_[n], distance);
        sums_[n] = add_or_largest(n, sums_[n], other);
      }
    }
  }

  /// Over the warps of a block, whose lanes have been joined. All of its threads call.
  struct Sums {
    float of[3];
  };
  template <int kWarps>
  BAMTRAIN_DEVICE void join_warps(Sums (&shared)[kWarps], int thread) {
    if (thread % 32 == 0) shared[thread / 32] = {{sums_[0], sums_[1], sums_[2]}};
    device::barrier();
    BAMTRAIN_UNROLL
    for (int n = 0; n < 3; ++n) {
      float joined = shared[0].of[n];
      for (int w = 1; w < kWarps; ++w) joined = add_or_largest(n, joined, shared[w].of[n]);
      sums_[n] = joined;
    }
    device::barrier();
  }

  /// After a pass; `passes`: how many there have been.
  template <bool kExact>
  BAMTRAIN_DEVICE void advance(int passes, bool of_list = false) {
    if (!of_list && !done()) listed_ = false;
    switch (phase) {
      case SearchPhase::extremes:
        begin();
        break;
      case SearchPhase::solve:
        if (form_ == WeightForm::topk) {
          narrow(passes);
        } else {
          step<kExact>(passes);
        }
        break;
      case SearchPhase::list:
        take_listed(passes);
        break;
      case SearchPhase::ties: {
        const int32_t at[] = {selection_->quarter(1), selection_->quarter(2),
                              selection_->quarter(3)};
        if (selection_->narrow(at, sums_)) end(selection_->low, true);
        break;
      }
      case SearchPhase::done:
        break;
    }
    clear();
    if (list_.own != nullptr && !listed_) list_.clear();
  }

 private:
  /// Of the n-th of sums_.
  BAMTRAIN_DEVICE float add_or_largest(int n, float x, float y) const {
    return phase == SearchPhase::extremes && n != 1 ? fmaxf(x, y) : x + y;
  }
  BAMTRAIN_DEVICE void clear() {
    const float none = phase == SearchPhase::extremes ? kMinusInfinity : 0.0f;
    BAMTRAIN_UNROLL
    for (int n = 0; n < 3; ++n) {
      sums_[n] = n == 1 ? 0.0f : none;
    }
  }

  /// After the extremes.
  BAMTRAIN_DEVICE void begin() {
    level = sums_[0];
    if (sums_[1] != sums_[1]) {  // NaN: so are all weights
      level = threshold = bound_ = level + NAN;
      phase = SearchPhase::done;
      return;
    }
    phase = is_of_level(form_) ? SearchPhase::done : SearchPhase::solve;
    if (form_ == WeightForm::topk) {
      selection_->low = ordered(-sums_[2]);
      selection_->high = ordered(level) + 1;
      selection_->from_low = keys_;
      selection_->from_high = 0;
      continue_selection(selection_->finished(), 0);
    } else if (a_ > 1) {
      three_[kLow] = 1.0f / static_cast<float>(keys_);
      three_[kHigh] = 1.0f;
      bisect();
    }
  }

  // --- topk -------------------------------------------------------------------------------------

  template <bool kExact, class ForLogits>
  BAMTRAIN_DEVICE bool accumulate_topk(const ForLogits& for_logits) {
    float largest = kMinusInfinity;
    if (phase == SearchPhase::solve) {
      for_logits([&](float z, int) {
        largest = fmaxf(largest, z);
        BAMTRAIN_UNROLL
        for (int n = 0; n < 3; ++n) sums_[n] += z >= three_[n] ? 1.0f : 0.0f;
      });
      return largest >= bound_;
    }
    if (phase == SearchPhase::list) {
      for_logits([&](float z, int) { largest = fmaxf(largest, z); });
      if constexpr (!kExact) list_.add_largest(for_logits, three_[0], selection_->left_out);
    } else if (phase == SearchPhase::ties) {
      const int32_t first = selection_->quarter(1), second = selection_->quarter(2),
                    third = selection_->quarter(3);
      for_logits([&](float z, int j) {
        largest = fmaxf(largest, z);
        if (z != threshold) return;
        sums_[0] += -j >= first ? 1.0f : 0.0f;
        sums_[1] += -j >= second ? 1.0f : 0.0f;
        sums_[2] += -j >= third ? 1.0f : 0.0f;
      });
    } else {
      for_logits([&](float z, int) { largest = fmaxf(largest, z); });
    }
    return keys_ > 0 && !(largest < bound_);
  }
  BAMTRAIN_DEVICE void narrow(int passes) {
    const int32_t at[] = {ordered(three_[0]), ordered(three_[1]), ordered(three_[2])};
    continue_selection(selection_->narrow(at, sums_), passes);
  }
  /// The next pass of the K-th largest logit, or what comes after it.
  BAMTRAIN_DEVICE void continue_selection(bool finished, int passes, bool may_list = true) {
    bound_ = unordered(selection_->low);
    if (finished) return end_selection(passes == 0 || selection_->span() <= 1);
    if (may_list && list_.own != nullptr && !listed_ &&
        selection_->from_low < LogitList::kMostTried) {
      return begin_list(bound_);
    }
    BAMTRAIN_UNROLL
    for (uint32_t n = 0; n < 3; ++n) {
      // Quarters of floats come close to the logits sought sooner, those of integers always arrive.
      three_[n] = unordered(passes < kFittedPasses ? selection_->quarter_of_floats(n + 1)
                                                   : selection_->quarter(n + 1));
    }
  }
  /// Of the logits from there on.
  BAMTRAIN_DEVICE void begin_list(float from) {
    phase = SearchPhase::list;
    bound_ = three_[0] = from;
    selection_->left_out = kMinusInfinity;
  }
  /// How many this lane has listed above all of the row that had no room.
  BAMTRAIN_DEVICE void count_listed(float left_out) {
    if (!(left_out < three_[0])) three_[0] = unordered(ordered(left_out) + 1);
    list_.each([&](float z, int) { sums_[0] += z >= three_[0] ? 1.0f : 0.0f; });
  }
  /// From here on what is counted is listed, unless too much had no room.
  BAMTRAIN_DEVICE void take_listed(int passes) {
    phase = SearchPhase::solve;
    listed_ = sums_[0] >= static_cast<float>(selection_->wanted);
    if (!listed_) return continue_selection(false, passes, false);
    selection_->low = ordered(three_[0]);
    selection_->from_low = static_cast<int>(sums_[0]);
    continue_selection(selection_->finished(), passes);
  }
  /// All is found. `last`: minus that of SavedRows. `exact`: whether a logit is the threshold,
  /// which an empty range tells find_smallest().
  BAMTRAIN_DEVICE void end(int32_t last, bool exact) {
    phase = SearchPhase::done;
    selection_->low = last;
    selection_->high = exact ? last : last + 1;
  }
  /// The threshold is found; where more keys have just that, so must the last of them be.
  BAMTRAIN_DEVICE void end_selection(bool exact) {
    threshold = unordered(selection_->low);
    if (selection_->from_low == selection_->wanted) return end(-i_, exact);
    listed_ = false;
    phase = SearchPhase::ties;
    selection_->from_low -= selection_->from_high;
    selection_->wanted -= selection_->from_high;
    selection_->from_high = 0;
    selection_->low = -i_;
    selection_->high = -(i_ - keys_);
  }

  // --- entmax: threshold is delta; with alpha > 2 the weight of the largest logit ----------

  template <WeightForm kForm, bool kExact, class ForLogits>
  BAMTRAIN_DEVICE void accumulate_entmax(const ForLogits& for_logits) {
    if constexpr (kForm != WeightForm::entmax) {
      for_logits([&](float z, int) {
        const float slope = kForm == WeightForm::entmax_2 ? 1.0f : 0.5f;
        const float x = fmaxf(kExact ? fmaf(slope, z - level, threshold) : z, 0.0f);  // line()
        sums_[0] += x;
        sums_[1] = fmaf(x, x, sums_[1]);
        if (kForm == WeightForm::entmax_2) sums_[2] += x > 0 ? 1.0f : 0.0f;
      });
    } else if constexpr (kExact) {
      for_logits([&](float z, int) {
        const float x = threshold - a_ * (level - z);
        if (!(x > 0)) return;
        const float p = power_of<true>(x, 1.0f / a_);
        sums_[0] += p;
        sums_[1] += p / x;
      });
    } else {
      const float power = 1.0f / a_;
      for_logits([&](float z, int) {
        const float x = fmaxf(fmaf(a_, z - level, threshold), 0.0f);
        const float less = device::exp2_approx((power - 1.0f) * device::log2_approx(x));
        sums_[0] = fmaf(less, x, sums_[0]);
        sums_[1] += less;
      });
    }
  }

  /// Whether a pass for delta lists logits: where there are few.
  BAMTRAIN_DEVICE bool lists(int passes) const {
    return list_.own != nullptr && (a_ == 1 ? passes >= 2 : a_ < 1 && passes >= 3);
  }
  /// Up to where a pass for delta lists logits: in the end delta is at most bound_.
  BAMTRAIN_DEVICE float listed_delta() const { return fminf(kListed * threshold, bound_); }
  template <WeightForm kForm>
  BAMTRAIN_DEVICE float least_listed() const {
    const float width = listed_delta();
    return takes_roots(kForm) ? threshold - width : level - width / a_;
  }

  /// The next delta, given the norm at the current one and the derivative of delta by the norm:
  /// where the cubic through this delta and the one before, with these derivatives, has norm 1. The
  /// first takes Newton's step for the root of the norm: norms rise like a square or faster.
  BAMTRAIN_DEVICE float interpolated(float norm, float slope, int passes) {
    const float norm0 = three_[kNorm], delta0 = three_[kDelta], slope0 = three_[kSlope];
    three_[kNorm] = norm;
    three_[kDelta] = threshold;
    three_[kSlope] = slope;
    const float width = norm - norm0, part = (1.0f - norm0) / width;
    if (passes <= 2) return fminf(threshold - 2.0f * slope * (norm - sqrtf(norm)), bound_);
    if (passes > kFittedPasses || !(fabsf(width) > 1e-6f)) return bound_;
    const float rest = 1.0f - part;
    const float at = rest * rest * ((1.0f + 2.0f * part) * delta0 + part * width * slope0) +
                     part * part * ((3.0f - 2.0f * part) * threshold - rest * width * slope);
    const float least = 0.1f * fminf(threshold, delta0);
    return at >= least ? fminf(at, bound_) : bound_;
  }

  /// With alpha > 2.
  template <bool kExact, class ForLogits>
  BAMTRAIN_DEVICE bool accumulate_steep(const ForLogits& for_logits) {
    RowWeights weights;
    weights.level = level;
    weights.threshold = threshold;
    weights.third = three_[kInverse];
    weights.a = a_;
    float largest = kMinusInfinity;
    for_logits([&](float z, int j) {
      largest = fmaxf(largest, z);
      if (phase == SearchPhase::solve) {
        sums_[0] += weights.of<WeightForm::entmax, kExact>(z, j).p;
      }
    });
    return keys_ > 0 && reaches(largest, level);
  }
  /// Whether a logit is in a support that is at most bound_ wide; the largest of the row always is,
  /// whatever delta is, which may be too small for a float.
  BAMTRAIN_DEVICE bool reaches(float z, float of_row) const {
    return z > kMinusInfinity && (z == of_row || !(bound_ - a_ * (of_row - z) <= 0));
  }

  template <bool kExact>
  BAMTRAIN_DEVICE void step(int passes) {
    if (a_ > 1) return halve(passes);
    // Of equal logits.
    const float equal = 1.0f / static_cast<float>(keys_), least = a_ == 0.5f ? sqrtf(equal) : equal;
    const float before = threshold, sum = sums_[0], listed = listed_delta();
    float tolerance = kConverged<kExact>, feared = 0;
    bool short_of_one = false;
    if (form_ == WeightForm::entmax_2) {
      lower_bound_to(threshold - (sum - 1.0f) / sums_[2]);
      // Far from the root a fit to the sum of squares, whose derivative the sum is.
      threshold =
          sum > 1.5f && passes < kFittedPasses ? fminf(threshold - fitted(sum), bound_) : bound_;
      feared = fabsf(sum - 1.0f);
    } else {
      // Newton's method for the norm (sum x^(1/a))^a = 1, which is convex in delta, never leaves
      // too small a delta.
      float norm, slope;
      if (form_ == WeightForm::entmax_1_5) {
        norm = sqrtf(sums_[1]);
        slope = norm / sum;
      } else {
        const float less = kExact ? exact_power(sum, 1.0f - a_)
                                  : device::exp2_approx((1.0f - a_) * device::log2_approx(sum));
        norm = sum / less;
        slope = less / sums_[1];
      }
      lower_bound_to(threshold - (norm - 1.0f) * slope);
      threshold = interpolated(norm, slope, passes);
      const float of_weights = form_ == WeightForm::entmax_1_5 ? sums_[1] : sum;
      short_of_one = of_weights < 1.0f;
      // A step to a larger delta may meet keys that no pass has seen. One to a smaller delta comes
      // closer than it was, and close where Newton's way and the fitted one agree.
      const float off = of_weights - 1.0f;
      const bool two_ways = passes > 2 && off < kMostFitted && threshold < bound_;
      feared = short_of_one ? -16.0f * off : two_ways ? (bound_ - threshold) / (slope * a_) : off;
      // Of such a step less than 1e-4 of the sum is left.
      if (!kExact && passes > 2) tolerance = form_ == WeightForm::entmax_1_5 ? 1e-2f : 2e-3f;
    }
    bound_ *= 1.0f + 1e-6f;
    bool converged = !(fabsf(threshold - before) > tolerance * threshold);
    if (!kExact && (converged || short_of_one)) converged = !(feared > kMostFeared);
    if (!kExact && converged && short_of_one) threshold = before;
    if (form_ != WeightForm::entmax) threshold = fmaxf(threshold, least);
    if (!listed_ && lists(passes) && whole_ && bound_ <= listed) {
      listed_ = true;
      list_.delta() = before;
    }
    if (passes < kMostPasses && !converged) return;
    finish(a_ == 0.5f   ? threshold * threshold
           : a_ == 1.0f ? threshold
                        : exact_power(threshold, 1.0f / a_));
  }
  /// Newton's delta from threshold is not too small; nor is bound_ but for roundings, of which
  /// there were too many where it is no more than a threshold that has proved too small.
  BAMTRAIN_DEVICE void lower_bound_to(float newton) {
    const bool valid = !(newton > threshold) || bound_ > threshold * (1.0f + 4e-6f);
    bound_ = valid ? fminf(bound_, newton) : newton;
  }
  /// What leads from threshold to where (1 - d / w)^(k - 1) of the sum of x is 1, with (1 - d /
  /// w)^k that of their squares: its first two derivatives are those of that.
  BAMTRAIN_DEVICE float fitted(float sum) const {
    const float first = sums_[0], second = sums_[1];
    const float ratio = fminf(sums_[2] * second / (2.0f * first * first), 0.99f);
    const float k = 1.0f / (1.0f - ratio), width = k * second / (2.0f * first);
    return width * (1.0f - device::exp2_approx(-device::log2_approx(sum) / (k - 1.0f)));
  }
  /// The sum rises without bound where a key enters the support.
  BAMTRAIN_DEVICE void halve(int passes) {
    if (sums_[0] >= 1) {
      three_[kHigh] = threshold;
    } else {
      three_[kLow] = threshold;
    }
    const float low = three_[kLow], high = three_[kHigh];
    bisect();
    bound_ = exact_power(high, a_);
    // Weights are divided by their sum, but what is in the support is not known before the end.
    if (passes >= kMostPasses || !(high - low > kConverged<true> * high)) finish(high);
  }
  BAMTRAIN_DEVICE void bisect() {
    threshold = 0.5f * (three_[kLow] + three_[kHigh]);
    RowWeights middle;
    middle.threshold = threshold;
    middle.set_entmax(a_);
    three_[kInverse] = middle.third;
  }
  BAMTRAIN_DEVICE void finish(float weight) {
    threshold = weight;
    phase = SearchPhase::done;
  }

  LogitList list_;
  bool whole_ = false;   // there was room for all in the list
  bool listed_ = false;  // all that matters is
  Selection* selection_ = nullptr;
  WeightForm form_ = WeightForm::softmax;
  int i_ = 0, keys_ = 0;
  float a_ = 0;
  float bound_ = 1;  // entmax: an upper bound of delta. topk: a lower one of the threshold
  // topk: where the next pass counts, or from where it lists. entmax with alpha > 2: what the
  // weight of the largest logit is between, and 1 / delta of threshold.
  static constexpr int kLow = 0, kHigh = 1, kInverse = 2;
  // entmax with another alpha: the norm of the pass before, its delta and the derivative of that.
  static constexpr int kNorm = 0, kDelta = 1, kSlope = 2;
  float three_[3] = {};
  float sums_[3] = {};  // of a pass; or counts, exact up to 2^24
};

}  // namespace bamtrain::kernels

#pragma once
// What the search of topk works in: the range in which the K-th largest logit is, and the few
// logits that are left in it.

#include "attention_weights.cuh"

namespace bamtrain::kernels {

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
  float left_out;           // of a list: the largest logit that it had no room for, of this lane

  BAMTRAIN_DEVICE uint32_t span() const {
    return static_cast<uint32_t>(high) - static_cast<uint32_t>(low);
  }
  /// The n-th quarter of the range.
  BAMTRAIN_DEVICE int32_t quarter(uint32_t n) const {
    const uint32_t s = span();
    return static_cast<int32_t>(static_cast<uint32_t>(low) + s / 4 * n + s % 4 * n / 4);
  }
  /// The same of the range of floats that the integers stand for: their middle is no power of two.
  BAMTRAIN_DEVICE int32_t quarter_of_floats(uint32_t n) const {
    const float from = unordered(low), part = 0.25f * static_cast<float>(n);
    const int32_t at = ordered(from + part * (unordered(high) - from));
    return at < low ? low : at > high ? high : at;
  }
  /// sums[n]: how many integers reach at[n], in rising order. Whether low is what was sought, or
  /// tells the wanted integers from the others.
  BAMTRAIN_DEVICE bool narrow(const int32_t (&at)[3], const float (&sums)[3]) {
    const int counts[] = {static_cast<int>(sums[0]), static_cast<int>(sums[1]),
                          static_cast<int>(sums[2])};
    BAMTRAIN_UNROLL
    for (int n = 0; n < 3; ++n) {
      if (counts[n] >= wanted && at[n] >= low) {
        low = at[n];
        from_low = counts[n];
      }
    }
    BAMTRAIN_UNROLL
    for (int n = 2; n >= 0; --n) {
      if (counts[n] < wanted && at[n] < high) {
        high = at[n];
        from_high = counts[n];
      }
    }
    return finished();
  }
  BAMTRAIN_DEVICE bool finished() const { return from_low == wanted || span() <= 1; }
};

/// Where the four lanes of a row list logits: of each of its rows a thread has kSlots floats and
/// behind them how many it listed, kStride apart. As many as there are slots are too many.
struct LogitList {
  static constexpr int kSlots = 21, kStride = 128;
  static constexpr int kFloats = (kSlots + 1) * kStride;  // of a row of each thread
  static constexpr int kMostTried = 48;                   // of a row, when there may be room
  static constexpr int kGroups = 20;                      // of keys, before anything is listed

  float* own = nullptr;  // null: there is no room
  int lane = 0;          // of the warp

  BAMTRAIN_DEVICE float& slot(int n) const { return own[n * kStride]; }
  /// entmax: with which delta roots were listed. There is room where there was for all of them.
  BAMTRAIN_DEVICE float& delta() const { return slot(kSlots - 1); }
  BAMTRAIN_DEVICE int count() const { return static_cast<int>(slot(kSlots)); }
  BAMTRAIN_DEVICE void clear() const { slot(kSlots) = 0; }
  /// Lists those of for_logits(f), f(z, j), that are at least `from`. Whether the lane's list is
  /// full: some may have had no room.
  template <class ForLogits>
  BAMTRAIN_DEVICE bool add(const ForLogits& for_logits, float from) const {
    int n = count();
    for_logits([&](float z, int) {
      if (!(z >= from)) return;
      slot(n) = z;
      n = n + 1 < kSlots ? n + 1 : kSlots - 1;
    });
    slot(kSlots) = static_cast<float>(n);
    return n == kSlots - 1;
  }
  /// Adds the same in such a way that the largest of all have room; left_out: the largest that has
  /// none.
  template <class ForLogits>
  BAMTRAIN_DEVICE void add_largest(const ForLogits& for_logits, float from, float& left_out) const {
    int n = count();
    if (!add(for_logits, from)) return;
    int logits = 0;
    for_logits([&](float, int) { ++logits; });
    BAMTRAIN_NO_UNROLL
    for (int k = 0; k < logits; ++k) {
      float z = -INFINITY;
      int at = 0;
      for_logits([&](float x, int) {
        if (at == k) z = x;
        ++at;
      });
      if (!(z >= from) || n++ < kSlots - 1) continue;
      int place = 0;
      BAMTRAIN_NO_UNROLL
      for (int m = 1; m < kSlots - 1; ++m) {
        if (slot(m) < slot(place)) place = m;
      }
      left_out = fmaxf(left_out, fminf(z, slot(place)));
      slot(place) = fmaxf(z, slot(place));
    }
  }
  /// Whether the four lanes of the row had room for all. All lanes of the warp call.
  BAMTRAIN_DEVICE bool whole() const {
    const uint32_t full = device::ballot(device::kWholeWarp, count() >= kSlots - 1);
    return (full >> (lane & ~3) & 15) == 0;
  }
  /// f(z, 0) of every logit that this lane listed.
  template <class F>
  BAMTRAIN_DEVICE void each(const F& f) const {
    const int n = count();
    for (int k = 0; k < n; ++k) f(slot(k), 0);
  }

  /// In place of a list, the largest logit of each of kGroups groups of keys: of pairs of the eight
  /// keys that the lane has of a part, of every fifth part.
  BAMTRAIN_DEVICE void clear_groups() const {
    for (int n = 0; n < kGroups; ++n) slot(n) = -INFINITY;
  }
  template <class ForLogits>
  BAMTRAIN_DEVICE void add_to_groups(const ForLogits& for_logits, int part) const {
    int n = 0;
    float of_two = 0;
    for_logits([&](float z, int) {
      if (n % 2 == 0) {
        of_two = z;
      } else {
        float& largest = slot(part % (kGroups / 4) * 4 + n / 2);
        largest = fmaxf(largest, fmaxf(of_two, z));
      }
      ++n;
    });
  }
};

}  // namespace bamtrain::kernels

#pragma once
// FIRE (Li et al. 2024; DAPE, section 4): b = f(u), u = psi(d) / (psi(max(i, |m| L0)) + 1e-6),
// psi(x) = log(|c| x + 1). f: 1 -> 32 -> H with ReLU or leaky ReLU between. i is the query's
// position in its document.
//
// A network with one input is piecewise linear. f has at most 32 kinks; between two of them the
// bias of each head is slope u + offset. Kernels evaluate these lines. Their backward pass returns
// the sums of db and of db u per head and segment, and per query what c and m need. This is exact,
// not an approximation.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace bamtrain {

constexpr int kFireHidden = 32, kFireSegments = kFireHidden + 1;
constexpr double kFireEpsilon = 1e-6;

/// The network and the scalars of one layer. The pointers refer to the parameters.
struct FireParameters {
  const double* w1;  // (32): into the hidden layer
  const double* b1;  // (32)
  const double* w2;  // (H, 32)
  const double* b2;  // (H)
  double c, m;
  int64_t H = 0;
  double L0 = 0;
  double negative_slope = 0;  // slope of an inactive hidden unit
};

/// One head's bias in one segment: slope u + offset.
struct FireLine {
  double slope, offset;
};

/// The u > 0 at which hidden unit k turns on or off; infinite if there is none.
BAMTRAIN_HD inline double fire_kink(const FireParameters& p, int k) {
  const double kink = -p.b1[k] / p.w1[k];
  return kink > 0 ? kink : static_cast<double>(INFINITY);
}
/// The rank of kink k: the number of kinks before it in ascending order.
BAMTRAIN_HD inline int fire_rank(const double* kinks, int k) {
  int rank = 0;
  for (int n = 0; n < kFireHidden; ++n) {
    rank += kinks[n] < kinks[k] || (kinks[n] == kinks[k] && n < k);
  }
  return rank;
}
/// Bit k: hidden unit k is active in this segment between ascending kinks.
BAMTRAIN_HD inline uint32_t fire_active(const FireParameters& p, const double* kinks, int segment) {
  const double infinity = static_cast<double>(INFINITY);
  const double low = segment == 0 ? 0 : kinks[segment - 1];
  const double high = segment == kFireHidden ? infinity : kinks[segment];
  if (low == infinity) return 0;  // no such segment
  // A point inside the segment. A segment between equal kinks is empty; its result is not used.
  const double inside = high == infinity ? low + 1 : (low + high) / 2;
  uint32_t active = 0;
  for (int k = 0; k < kFireHidden; ++k) {
    if (p.w1[k] * inside + p.b1[k] > 0) active |= uint32_t{1} << k;
  }
  return active;
}

/// Sums of db and of db u over some logits.
struct FireSums {
  double of_one, of_u;
};

/// f for u >= 0, segment by segment.
struct FireSegments {
  // Ascending, > 0, padded with infinity. Segment s is kinks[s - 1] <= u < kinks[s].
  double kinks[kFireHidden];
  uint32_t active[kFireSegments];  // fire_active

  FireSegments() = default;
  explicit FireSegments(const FireParameters& p);

  int segment_of(double u) const {
    return static_cast<int>(std::upper_bound(kinks, kinks + kFireHidden, u) - kinks);
  }
  BAMTRAIN_HD bool is_active(int segment, int k) const { return (active[segment] >> k & 1) != 0; }
  BAMTRAIN_HD FireLine line(const FireParameters& p, int64_t h, int segment) const {
    FireLine l = {0, p.b2[h]};
    for (int k = 0; k < kFireHidden; ++k) {
      const double out = unit_slope(p, segment, k) * p.w2[h * kFireHidden + k];
      l.slope += out * p.w1[k];
      l.offset += out * p.b1[k];
    }
    return l;
  }
  /// The slope of hidden unit k in a segment.
  BAMTRAIN_HD double unit_slope(const FireParameters& p, int segment, int k) const {
    return is_active(segment, k) ? 1 : p.negative_slope;
  }
  /// Sums one head's (kFireSegments, 2) over segments, weighted by the slope of hidden unit k.
  BAMTRAIN_HD FireSums of_unit(const FireParameters& p, const double* sums, int k) const {
    FireSums total = {0, 0};
    for (int s = 0; s < kFireSegments; ++s) {
      total.of_one += unit_slope(p, s, k) * sums[2 * s];
      total.of_u += unit_slope(p, s, k) * sums[2 * s + 1];
    }
    return total;
  }
};

inline FireSegments::FireSegments(const FireParameters& p) {
  double unordered[kFireHidden];
  for (int k = 0; k < kFireHidden; ++k) unordered[k] = fire_kink(p, k);
  for (int k = 0; k < kFireHidden; ++k) kinks[fire_rank(unordered, k)] = unordered[k];
  for (int s = 0; s < kFireSegments; ++s) active[s] = fire_active(p, kinks, s);
}

/// Gradients of the network's parameters; fire_adjoint adds to them.
struct FireGradients {
  double *w1, *b1, *w2, *b2;
};

/// The adjoint of FireSegments. `sums` (H, kFireSegments, 2): sums of db and of db u over the
/// logits of each head and segment.
inline void fire_adjoint(const FireGradients& d, const FireParameters& p, const FireSegments& f,
                         const double* sums) {
  for (int64_t h = 0; h < p.H; ++h) {
    const double* const of_head = sums + 2 * h * kFireSegments;
    for (int s = 0; s < kFireSegments; ++s) d.b2[h] += of_head[2 * s];
    for (int k = 0; k < kFireHidden; ++k) {
      const int64_t n = h * kFireHidden + k;
      const FireSums on = f.of_unit(p, of_head, k);
      d.w2[n] += p.w1[k] * on.of_u + p.b1[k] * on.of_one;
      d.w1[k] += p.w2[n] * on.of_u;
      d.b1[k] += p.w2[n] * on.of_one;
    }
  }
}

/// psi, and its derivative with respect to c.
BAMTRAIN_HD inline double fire_psi(double c, double x) { return log1p(fabs(c) * x); }
BAMTRAIN_HD inline double fire_psi_dc(double c, double x) {
  return copysign(x / (fabs(c) * x + 1), c);
}

/// The normaliser N of a query at this position, with its derivatives.
struct FireNormalizer {
  double N, dc, dm;

  BAMTRAIN_HD FireNormalizer(const FireParameters& p, int64_t position) {
    const double threshold = fabs(p.m) * p.L0, i = static_cast<double>(position);
    const double x = i < threshold ? threshold : i;
    N = fire_psi(p.c, x) + kFireEpsilon;
    dc = fire_psi_dc(p.c, x);
    dm = i < threshold ? copysign(fabs(p.c) * p.L0 / (fabs(p.c) * x + 1), p.m) : 0;
  }
};

/// The first distance with psi(d) >= kink N, at most T.
BAMTRAIN_HD inline int32_t fire_end(const FireParameters& p, double kink, double N, int64_t T) {
  const double d = ceil(expm1(kink * N) / fabs(p.c));
  return static_cast<int32_t>(d < static_cast<double>(T) ? d : static_cast<double>(T));
}

}  // namespace bamtrain

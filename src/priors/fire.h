#pragma once
// FIRE (Li et al. 2024; DAPE, section 4): b = f(u), u = psi(d) / (psi(max(i, |m| L0)) + 1e-6),
// psi(x) = log(|c| x + 1), f: 1 -> 32 -> H with ReLU between. i is the query's position in its
// document.
//
// A ReLU network of one input is piecewise linear: between two of its at most 32 kinks every head's
// bias is slope u + offset. Kernels evaluate that; they return, per head and segment, the sums of
// db and of db u, and per query what c and m need. Nothing here is approximate.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "priors/prior.h"

namespace bamtrain {

constexpr int kFireHidden = 32, kFireSegments = kFireHidden + 1;
constexpr double kFireEpsilon = 1e-6;

/// The network and the scalars of one layer. All by reference to the parameters.
struct FireParameters {
  const double* w1;  // (32): into the hidden layer
  const double* b1;  // (32)
  const double* w2;  // (H, 32)
  const double* b2;  // (H)
  double c, m;
  int64_t H = 0;
  double L0 = 0;
};

/// One head's bias in one segment: slope u + offset.
struct FireLine {
  double slope, offset;
};

/// f for u >= 0, segment by segment.
struct FireSegments {
  int count = 1;
  double kinks[kFireHidden] = {};  // ascending, > 0: segment s is kinks[s - 1] <= u < kinks[s]
  bool active[kFireSegments][kFireHidden] = {};

  explicit FireSegments(const FireParameters& p);

  int segment_of(double u) const {
    return static_cast<int>(std::upper_bound(kinks, kinks + count - 1, u) - kinks);
  }
  FireLine line(const FireParameters& p, int64_t h, int segment) const {
    FireLine l = {0, p.b2[h]};
    for (int k = 0; k < kFireHidden; ++k) {
      if (!active[segment][k]) continue;
      l.slope += p.w2[h * kFireHidden + k] * p.w1[k];
      l.offset += p.w2[h * kFireHidden + k] * p.b1[k];
    }
    return l;
  }
};

inline FireSegments::FireSegments(const FireParameters& p) {
  for (int k = 0; k < kFireHidden; ++k) {
    if (p.w1[k] == 0) continue;
    const double kink = -p.b1[k] / p.w1[k];
    if (kink > 0 && std::isfinite(kink)) kinks[count++ - 1] = kink;
  }
  std::sort(kinks, kinks + count - 1);
  for (int s = 0; s < count; ++s) {
    // A point inside the segment; one between equal kinks is empty, and whatever it says unused.
    const double low = s == 0 ? 0 : kinks[s - 1];
    const double inside = s == count - 1 ? low + 1 : (low + kinks[s]) / 2;
    for (int k = 0; k < kFireHidden; ++k) active[s][k] = p.w1[k] * inside + p.b1[k] > 0;
  }
}

/// Where the gradients of the network's parameters are added.
struct FireGradients {
  double *w1, *b1, *w2, *b2;
};

/// The adjoint of FireSegments: from the sums of db and of db u over the logits of each head and
/// segment, (H, kFireSegments, 2).
inline void fire_adjoint(const FireGradients& d, const FireParameters& p, const FireSegments& f,
                         const double* sums) {
  for (int64_t h = 0; h < p.H; ++h) {
    for (int s = 0; s < f.count; ++s) {
      const double* const of_segment = sums + 2 * (h * kFireSegments + s);
      const double of_one = of_segment[0], of_u = of_segment[1];
      d.b2[h] += of_one;
      for (int k = 0; k < kFireHidden; ++k) {
        if (!f.active[s][k]) continue;
        const int64_t n = h * kFireHidden + k;
        d.w2[n] += p.w1[k] * of_u + p.b1[k] * of_one;
        d.w1[k] += p.w2[n] * of_u;
        d.b1[k] += p.w2[n] * of_one;
      }
    }
  }
}

/// psi, and its derivative with respect to c.
inline double fire_psi(double c, double x) { return std::log1p(std::abs(c) * x); }
inline double fire_psi_dc(double c, double x) {
  return std::copysign(x / (std::abs(c) * x + 1), c);
}

/// The normaliser N of a query at this position, and its derivatives.
struct FireNormalizer {
  double N, dc, dm;

  FireNormalizer(const FireParameters& p, int64_t position) {
    const double threshold = std::abs(p.m) * p.L0, i = static_cast<double>(position);
    const double x = std::max(i, threshold);
    N = fire_psi(p.c, x) + kFireEpsilon;
    dc = fire_psi_dc(p.c, x);
    dm = i < threshold ? std::copysign(std::abs(p.c) * p.L0 / (std::abs(p.c) * x + 1), p.m) : 0;
  }
};

}  // namespace bamtrain

#pragma once
// Rotary position embedding (Su et al. 2021), half-split pairing as in Llama: channel c < D/2 is
// paired with c + D/2 and rotated by position * theta^(-2c/D).
//
// Past its training length T, a model uses frequencies that are scaled by `factor`:
//
//   linear  f / factor (position interpolation, Chen et al. 2023)
//   ntk     theta * factor^(D / (D - 2)): the highest frequency stays, the lowest is f / factor
//   yarn    f for pairs with more than 32 turns in T, f / factor below one turn, a ramp over the
//           pairs in between; queries and keys times 0.1 log(factor) + 1 (Peng et al. 2023)
//   llama3  f above 4 turns in T, f / factor below one turn, in between by the number of turns

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace bamtrain {

class Options;

/// Angle per unit of position of pair c of D/2.
BAMTRAIN_HD inline double rope_inverse_frequency(double theta, int64_t c, int64_t D) {
  return pow(theta, -2.0 * static_cast<double>(c) / static_cast<double>(D));
}

enum class RopeScaling { none, linear, ntk, yarn, llama3 };

/// The share of pair c that yarn interpolates. The ramp begins and ends at whole pairs, as
/// published.
inline double yarn_share(double theta, int64_t c, int64_t D, int64_t T) {
  constexpr double kFastTurns = 32, kSlowTurns = 1;
  const auto pair_of = [&](double turns) {
    const double frequency = turns * 2 * M_PI / static_cast<double>(T);
    return -static_cast<double>(D) * std::log(frequency) / (2 * std::log(theta));
  };
  const double first = std::max(0.0, std::floor(pair_of(kFastTurns)));
  const double last = std::min(static_cast<double>(D - 1), std::ceil(pair_of(kSlowTurns)));
  const double width = last == first ? 0.001 : last - first;
  return std::clamp((static_cast<double>(c) - first) / width, 0.0, 1.0);
}

/// The share that llama3 interpolates of a pair with this frequency.
inline double llama3_share(double frequency, int64_t T) {
  constexpr double kFastTurns = 4, kSlowTurns = 1;
  const double turns = static_cast<double>(T) * frequency / (2 * M_PI);
  return std::clamp((kFastTurns - turns) / (kFastTurns - kSlowTurns), 0.0, 1.0);
}

/// Angle per unit of position of pair c of D/2 in a model trained at length T.
inline double scaled_rope_frequency(RopeScaling scaling, double factor, double theta, int64_t c,
                                    int64_t D, int64_t T) {
  if (scaling == RopeScaling::ntk) {
    theta *= std::pow(factor, static_cast<double>(D) / static_cast<double>(D - 2));
  }
  const double f = rope_inverse_frequency(theta, c, D);
  const double share = scaling == RopeScaling::linear   ? 1
                       : scaling == RopeScaling::yarn   ? yarn_share(theta, c, D, T)
                       : scaling == RopeScaling::llama3 ? llama3_share(f, T)
                                                        : 0;
  return f * (1 - share) + f / factor * share;
}

inline double rope_amplitude(RopeScaling scaling, double factor) {
  return scaling == RopeScaling::yarn ? 0.1 * std::log(factor) + 1 : 1;
}

/// The training length before the frequencies were scaled, from the options, in a run of length T.
/// 0: no frequency depends on it.
double rope_original_length(const Options& options, int64_t T);

/// Rotates the pair (a, b) by the angle with this cosine and sine.
template <class Real>
BAMTRAIN_HD inline void rope_rotate(Real& a, Real& b, Real cosine, Real sine) {
  const Real x = a * cosine - b * sine;
  const Real y = b * cosine + a * sine;
  a = x;
  b = y;
}

/// The adjoint of rope_rotate: the rotation by the opposite angle.
template <class Real>
BAMTRAIN_HD inline void rope_rotate_adjoint(Real& da, Real& db, Real cosine, Real sine) {
  rope_rotate(da, db, cosine, -sine);
}

}  // namespace bamtrain

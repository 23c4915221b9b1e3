#pragma once
// Stick-breaking in the registers of a warp that owns rows: weights from a part's last key to its
// first, and their adjoint from the first to the last.

#include "attention_rows.cuh"

namespace bamtrain::kernels {

/// Weights of stick-breaking below kLeastWeight = e^-kMostBroken leave a tile dead.
constexpr float kMostBroken = 30.0f, kLeastWeight = 9.3576e-14f;

/// Of the four lanes that share a row, each with a value: the sum of those behind the own, or of
/// those before it, and of all. All lanes of the warp call.
template <bool kBehind>
struct LaneSums {
  float others, all;

  BAMTRAIN_DEVICE LaneSums(float x, const Lane& l) {
    const int place = kBehind ? 3 - l.pair : l.pair;
    const auto from = [](float value, int distance) {
      return kBehind ? device::shuffle_down(device::kWholeWarp, value, distance)
                     : device::shuffle_up(device::kWholeWarp, value, distance);
    };
    float sum = x;  // with the own
    BAMTRAIN_UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
      const float other = from(sum, distance);
      if (place >= distance) sum += other;
    }
    const float next = from(sum, 1);
    others = place > 0 ? next : 0.0f;
    all = device::shuffle(device::kWholeWarp, sum, l.lane - l.pair + (kBehind ? 0 : 3));
  }
};

/// Stick-breaking of row r, 0 or 1, of a group: logits become weights, u the shares, walking from
/// the last key of a part to its first. `broken`: the sum of -log(1 - share) of the keys behind it;
/// of its own too when done.
BAMTRAIN_DEVICE void stick_weights(Logits& z, Logits& u, float& broken, int r, const Lane& l) {
  BAMTRAIN_UNROLL
  for (int n = kColumns - 1; n >= 0; --n) {
    Stick sticks[2];
    BAMTRAIN_UNROLL
    for (int c = 0; c < 2; ++c) {
      const float x = z[n][2 * r + c];
      sticks[c] = x == kMinusInfinity ? Stick{0.0f, 0.0f} : stick_of<false>(x);
    }
    const LaneSums<true> sums(sticks[0].rest + sticks[1].rest, l);
    BAMTRAIN_UNROLL
    for (int c = 1; c >= 0; --c) {
      const float behind = broken + sums.others + (c == 0 ? sticks[1].rest : 0.0f);
      const float x = z[n][2 * r + c];
      u[n][2 * r + c] = sticks[c].share;
      z[n][2 * r + c] =
          x == kMinusInfinity ? 0.0f : exponential<false>(x - sticks[c].rest - behind);
    }
    broken += sums.all;
  }
}

/// The adjoint: dP becomes dz = p dP (1 - u) - u sum of p dP over the keys before. `before`: that
/// sum over the keys before the part; with its own when done.
BAMTRAIN_DEVICE void stick_adjoint(Logits& dp, const Logits& p, const Logits& u, float& before,
                                   int r, const Lane& l) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < kColumns; ++n) {
    const float gained[2] = {p[n][2 * r] * dp[n][2 * r], p[n][2 * r + 1] * dp[n][2 * r + 1]};
    const LaneSums<false> sums(gained[0] + gained[1], l);
    const float first = before + sums.others;
    dp[n][2 * r] = gained[0] * (1.0f - u[n][2 * r]) - u[n][2 * r] * first;
    dp[n][2 * r + 1] = gained[1] * (1.0f - u[n][2 * r + 1]) - u[n][2 * r + 1] * (first + gained[0]);
    before += sums.all;
  }
}

}  // namespace bamtrain::kernels

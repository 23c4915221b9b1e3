#pragma once
// The general path of attention on a device: any bias, scale and normalizer, chosen at run time, so
// that there is one set of kernels per head dimension. Products of tiles are those of the fused
// kernels; between them logits lie in the registers of the warp that owns their rows.
//
// A block has 64 queries, a warp 16 of them and whole tiles of 64 keys: what a bit of
// SavedRows::live is about. Logits are formed by the same code everywhere, with every rounding
// written down, so that each kernel finds the same.

#include "attention.cuh"
#include "attention_fire.cuh"
#include "attention_search.cuh"

namespace bamtrain::kernels {

static_assert(kLiveKeys == kTile && kLiveRows == kWarpRows);

/// Stages of the tiles that a kernel streams: as many as fit beside the others into 99 KiB.
template <int D>
constexpr int kGeneralStages = D > 64 ? 1 : 2;

/// Keys that a warp has in registers at a time: half a tile.
constexpr int kPart = kCarriedKeys, kParts = kTile / kPart;
constexpr int kColumns = kPart / 8;  // of eight keys each

/// Logits, weights or gradients of a warp's 16 rows and kPart keys: an accumulator.
using Logits = float[kColumns][4];

/// f(part) of a tile, from the last to the first where `leftwards`.
template <class F>
BAMTRAIN_DEVICE void for_parts(bool leftwards, const F& f) {
  BAMTRAIN_NO_UNROLL
  for (int n = 0; n < kParts; ++n) f(leftwards ? kParts - 1 - n : n);
}
/// Bytes from a tile of keys to its part.
template <int D>
BAMTRAIN_DEVICE uint32_t part_bytes(int part) {
  return static_cast<uint32_t>(part) * kTileBytes<D, kPart>;
}

BAMTRAIN_DEVICE BiasMode bias_mode(const AttentionInputs<bf16>& a) {
  return a.table != nullptr      ? BiasMode::table
         : a.fire.psi != nullptr ? BiasMode::fire
         : a.sums == nullptr     ? BiasMode::none
         : a.log_square          ? BiasMode::log_square
                                 : BiasMode::difference;
}

/// SavedRows::live of a tile of queries: four groups of rows. Null: everything is live.
struct LiveRows {
  int32_t* words;  // of the first group
  int groups;      // of the tile, that are in the sequence
  int64_t per_group;

  BAMTRAIN_DEVICE LiveRows(const AttentionInputs<bf16>& a, const SavedRows& saved, int b, int h,
                           int i0)
      : words(nullptr), groups(0), per_group(live_words(a.T)) {
    if (saved.live == nullptr) return;
    const int64_t all = live_groups(a.T), group = i0 / kLiveRows;
    groups = static_cast<int>(all - group < 4 ? all - group : 4);
    words = saved.live + ((static_cast<int64_t>(b) * a.H + h) * all + group) * per_group;
  }
  /// Whether the rows of warp w give weight to keys of the tile.
  BAMTRAIN_DEVICE bool warp(int w, int tile) const {
    return words == nullptr ||
           (w < groups && (words[w * per_group + tile / 32] >> (tile % 32) & 1) != 0);
  }
  BAMTRAIN_DEVICE bool any(int tile) const {
    return warp(0, tile) || warp(1, tile) || warp(2, tile) || warp(3, tile);
  }
};

/// The queries [i0, i0 + 64) of one head; a thread has parts of two rows of the warp's.
struct GeneralRows {
  int b, h, i0;
  int end;                        // T
  int first_tile, last_tile;      // of keys
  int widest_first;               // the largest first key of the block's rows
  int rows[2], first[2];          // rows past T: first is past the row, they see nothing
  float factor[2], u[2], sum[2];  // z = factor <q, k> + u b; S_i relative to the first row's
  float t[2];
  double first_sum;

  BAMTRAIN_DEVICE GeneralRows(const AttentionInputs<bf16>& a, int of_b, int of_h, int of_i0,
                              const Lane& l)
      : b(of_b), h(of_h), i0(of_i0), end(a.T) {
    const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
    const int last_row = i0 + kTile <= a.T ? i0 + kTile - 1 : a.T - 1;
    first_tile = first_key[i0] / kTile;
    last_tile = last_row / kTile;
    widest_first = first_key[last_row];
    first_sum = a.sums != nullptr ? a.sums[of_head(a) + i0] : 0.0;
    const float root = 1.0f / a.content_divisor;
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      rows[r] = i0 + l.warp * kWarpRows + l.row + 8 * r;
      first[r] = inside(r) ? first_key[rows[r]] : rows[r] + 1;
      t[r] = a.scale != nullptr && inside(r) ? a.scale[of_row(a, r)] : 1.0f;
      factor[r] = root * t[r];
      u[r] = a.scale_bias ? t[r] : 1.0f;
      sum[r] = a.sums != nullptr && inside(r) ? static_cast<float>(a.sums[of_row(a, r)] - first_sum)
                                              : 0.0f;
    }
  }

  BAMTRAIN_DEVICE int64_t of_head(const AttentionInputs<bf16>& a) const {
    return (static_cast<int64_t>(b) * a.H + h) * a.T;
  }
  /// Where row r is in a (B, H, T) array.
  BAMTRAIN_DEVICE int64_t of_row(const AttentionInputs<bf16>& a, int r) const {
    return of_head(a) + rows[r];
  }
  BAMTRAIN_DEVICE bool inside(int r) const { return rows[r] < end; }
  BAMTRAIN_DEVICE int keys(int r) const { return rows[r] - first[r] + 1; }
  BAMTRAIN_DEVICE bool sees(int r, int j) const { return j <= rows[r] && j >= first[r]; }
  /// Whether every row of the warp sees every key of the part at j0.
  BAMTRAIN_DEVICE bool warp_sees_all(const Lane& l, int j0) const {
    const int row = i0 + l.warp * kWarpRows;
    return j0 + kPart - 1 <= row && widest_first <= j0 && row + kWarpRows <= end;
  }

  /// What this thread puts into the slice of biases of the tile of keys at j0: of the table or of
  /// psi at one distance, or the sum of a key.
  BAMTRAIN_DEVICE float slice_entry(const AttentionInputs<bf16>& a, int j0, int thread) const {
    const int d = i0 - j0 + thread - (kTile - 1), j = j0 + thread;
    switch (bias_mode(a)) {
      case BiasMode::none:
        return 0.0f;
      case BiasMode::table:
        return d >= 0 && d < a.T ? a.table[h * a.table_head + d] : 0.0f;
      case BiasMode::fire:
        return d >= 0 && d < a.T ? a.fire.psi[d] : 0.0f;
      default:
        return thread < kTile && j < a.T ? static_cast<float>(a.sums[of_head(a) + j] - first_sum)
                                         : 0.0f;
    }
  }
  /// psi_dc of fire, likewise.
  BAMTRAIN_DEVICE float derivative_entry(const AttentionInputs<bf16>& a, int j0, int thread) const {
    const int d = i0 - j0 + thread - (kTile - 1);
    return a.fire.psi != nullptr && d >= 0 && d < a.T ? a.fire.psi_dc[d] : 0.0f;
  }
  /// From a tile's slice to that of its part.
  BAMTRAIN_DEVICE static const float* slice_of(const AttentionInputs<bf16>& a, const float* slice,
                                               int part) {
    return a.sums != nullptr ? slice + kPart * part : slice - kPart * part;
  }
  /// Where in a slice the distance of row r and a key of the part is.
  BAMTRAIN_DEVICE int slice_index(int r, int key) const { return rows[r] - i0 - key + kTile - 1; }
  /// x = S_j - S_i of row r and a key of the part.
  BAMTRAIN_DEVICE float difference(const float* slice, int r, int key) const {
    return slice[key] - sum[r];
  }
  /// db/dx there.
  BAMTRAIN_DEVICE float sum_derivative(const AttentionInputs<bf16>& a, const float* slice, int r,
                                       int key) const {
    const float x = difference(slice, r, key);
    return a.log_square ? bias_derivative<BiasMode::log_square>(x) : 1.0f;
  }
  /// Where row r's part of the keys at j0 begins, with fire. All lanes of the warp call.
  BAMTRAIN_DEVICE FirePlace place(const AttentionInputs<bf16>& a, int r, int j0,
                                  const Lane& l) const {
    return FirePlace(a, b, h, rows[r], rows[r] - j0, l.pair);
  }

  /// f(n, e, b) with the bias of each key of the part at j0. All lanes of the warp call.
  template <class F>
  BAMTRAIN_DEVICE void with_biases(const AttentionInputs<bf16>& a, const float* slice, int j0,
                                   const Lane& l, const F& f) const {
    switch (bias_mode(a)) {
      case BiasMode::none:
        return;
      case BiasMode::table:
        return for_elements(
            [&](int n, int e) { f(n, e, slice[slice_index(e / 2, l.column(n, e))]); });
      case BiasMode::difference:
        return for_elements(
            [&](int n, int e) { f(n, e, difference(slice, e / 2, l.column(n, e))); });
      case BiasMode::log_square:
        return for_elements([&](int n, int e) {
          const float x = difference(slice, e / 2, l.column(n, e));
          f(n, e, -kLn2 * device::log2_approx(fmaf(x, x, 1.0f)));
        });
      case BiasMode::fire:
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          FirePlace at = place(a, r, j0, l);
          float bias[kColumns][2] = {};
          fire_biases(bias, at, a, *this, r, j0, slice, l);
          for_row(r, [&](int n, int e) { f(n, e, kLn2 * bias[n][e % 2]); });
        }
    }
  }
  /// Products <q, k> become logits; those of keys that a row does not see minus infinity, with
  /// stick-breaking of its own too.
  BAMTRAIN_DEVICE void logits(Logits& z, const AttentionInputs<bf16>& a, const float* slice, int j0,
                              const Lane& l) const {
    for_elements([&](int n, int e) { z[n][e] *= factor[e / 2]; });
    with_biases(a, slice, j0, l,
                [&](int n, int e, float b) { z[n][e] = fmaf(u[e / 2], b, z[n][e]); });
    const bool stick = a.normalizer.kind == NormalizerKind::stick_breaking;
    if (!stick && warp_sees_all(l, j0)) return;
    for_elements([&](int n, int e) {
      const int r = e / 2, j = j0 + l.column(n, e);
      if (!sees(r, j) || (stick && j == rows[r])) z[n][e] = kMinusInfinity;
    });
  }

  /// f(n, e) of each element.
  template <class F>
  BAMTRAIN_DEVICE static void for_elements(const F& f) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) f(n, e);
    }
  }
  /// f(n, e) of each element of row r.
  template <class F>
  BAMTRAIN_DEVICE static void for_row(int r, const F& f) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      f(n, 2 * r);
      f(n, 2 * r + 1);
    }
  }
};

/// The products of the warp's 16 rows of A (64, D) with kPart rows X of a tile.
template <int D>
BAMTRAIN_DEVICE void multiply_part(Logits& c, SharedAddress a, SharedAddress x, const Lane& l) {
  Logits(&one)[1] = reinterpret_cast<Logits(&)[1]>(c);
  GeneralRows::for_elements([&](int n, int e) { c[n][e] = 0; });
  BAMTRAIN_UNROLL
  for (int step = 0; step < D / 16; ++step) {
    uint32_t rows[1][4];
    load_a<D>(rows[0], a + static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>, step, l);
    multiply_transposed<D>(one, rows, x, step, l);
  }
}

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

/// Stick-breaking of row r: logits become weights, u the shares, walking from the last key of a
/// part to its first. `broken`: the sum of -log(1 - share) of the keys behind it; of its own too
/// when done.
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

/// Weights of stick-breaking below kLeastWeight = e^-kMostBroken leave a tile dead.
constexpr float kMostBroken = 30.0f, kLeastWeight = 9.3576e-14f;

/// What the backward kernels read and leave to each other.
struct GeneralSaved {
  Rows<const bf16> dout;
  SavedRows rows;
  float *centre, *factor;  // (B, H, T) each: RowSums
  float* carries;          // (heads at hand, parts of keys, T, 2): `broken` and `before` of a row

  /// Of a row of the n-th head at hand and the keys from j0 on.
  BAMTRAIN_DEVICE float* carry(const AttentionInputs<bf16>& a, int n, int j0, int row) const {
    const int parts = (a.T + kTile - 1) / kTile * kParts;
    return carries + ((static_cast<int64_t>(n) * parts + j0 / kPart) * a.T + row) * 2;
  }
};

}  // namespace bamtrain::kernels

// Cross entropy: one block per row reads it once for the loss and once more for the gradient. The
// second time as much as fits comes from shared memory.
//
// Error of log(sum of e^d), d = z - highest, to first order, with all roundings of one sign. With p
// the softmax, the terms' relative errors are weighted by p: 2^-22 for 2^x (the instruction), 2^-23
// for the product that restores the rounding of d log2(e), 4 * 2^-24 for a pairwise sum of 16
// terms, and |d| 2^-24 for d itself; the highest term is exact. The worst case is one term of e^0
// and n of e^-a: for n = 2^17 the four together, over max(1, loss), reach 8e-7 at a = 11.2.
// Rounding the loss to fp32 adds 6e-8.

#include <cmath>
#include <limits>

#include "arguments.h"
#include "core/ignore_index.h"
#include "loss.h"
#include "reductions.cuh"
#include "vectors_of_four.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kLossWarps = 16, kLossThreads = 32 * kLossWarps;
constexpr int kLossVectors = 4;  // per thread in a tile
constexpr int kLossTile = 4 * kLossVectors * kLossThreads;
constexpr int kLossTileBytes = kLossTile * static_cast<int>(sizeof(float));
/// Tiles kept in shared memory: 96 KiB, which every device allows per block, and Hopper for two
/// blocks.
constexpr int kLossKeptTiles = 3;
constexpr int64_t kLossLimit = int64_t{1} << 30;
constexpr float kLowestLogit = std::numeric_limits<float>::lowest();

/// e^d for d <= 0, zero below 2^-126. 2^x magnifies the rounding of x = d log2(e) by |d|, so a
/// product restores that rounding. NaN stays NaN.
BAMTRAIN_DEVICE float exp_of_difference(float d) {
  constexpr float kLog2e = 1.44269502e+00f, kLog2eRest = 1.92596303e-08f, kLn2 = 6.93147181e-01f;
  constexpr float kZero = -87.5f;
  d = d < kZero ? kZero : d;  // avoids -inf - -inf
  const float x = d * kLog2e;
  const float rest = fmaf(d, kLog2eRest, fmaf(d, kLog2e, -x));
  const float y = device::exp2_approx(x);
  return fmaf(y, rest * kLn2, y);
}

/// The index of the thread's vector j of a tile, among all vectors of a row.
BAMTRAIN_DEVICE int logit_vector(int tile, int j) {
  return (tile * kLossVectors + j) * kLossThreads + static_cast<int>(device::thread_index().x);
}

/// The thread's part of a tile of a row of V logits; -inf from V on.
BAMTRAIN_DEVICE void load_logits(float (&x)[kLossVectors][4], const float* row, int tile, int V) {
  if ((tile + 1) * kLossTile <= V) {
    BAMTRAIN_UNROLL
    for (int j = 0; j < kLossVectors; ++j) load_vector(x[j], row + 4 * logit_vector(tile, j));
    return;
  }
  BAMTRAIN_UNROLL
  for (int j = 0; j < kLossVectors; ++j) {
    const int first = 4 * logit_vector(tile, j);
    if (first < V) load_vector(x[j], row + first);
    BAMTRAIN_UNROLL
    for (int n = 0; n < 4; ++n) x[j][n] = first + n < V ? x[j][n] : -INFINITY;
  }
}

BAMTRAIN_DEVICE float highest_logit(const float (&x)[kLossVectors][4], float highest) {
  BAMTRAIN_UNROLL
  for (int j = 0; j < kLossVectors; ++j) {
    highest = fmaxf(highest, fmaxf(fmaxf(x[j][0], x[j][1]), fmaxf(x[j][2], x[j][3])));
  }
  return highest;
}

BAMTRAIN_DEVICE float sum_of_exponentials(const float (&x)[kLossVectors][4], float highest) {
  float of_vector[kLossVectors];
  BAMTRAIN_UNROLL
  for (int j = 0; j < kLossVectors; ++j) {
    float e[4];
    BAMTRAIN_UNROLL
    for (int n = 0; n < 4; ++n) e[n] = exp_of_difference(x[j][n] - highest);
    of_vector[j] = (e[0] + e[1]) + (e[2] + e[3]);
  }
  return (of_vector[0] + of_vector[1]) + (of_vector[2] + of_vector[3]);
}

/// Writes the outputs of a row without a target.
template <class A>
BAMTRAIN_DEVICE void clear_row(const CrossEntropy<A>& c, int64_t r) {
  const int thread = static_cast<int>(device::thread_index().x);
  if (thread == 0) c.losses[r] = 0.0f;
  if (c.dlogits == nullptr) return;
  const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int first = 4 * thread; first < static_cast<int>(c.dlogits_row); first += 4 * kLossThreads) {
    store_four(c.dlogits + r * c.dlogits_row + first, zeros);
  }
}

template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kLossThreads, 2)
    cross_entropy_row(const CrossEntropy<A> c, const int kept_tiles) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  BAMTRAIN_SHARED(float, first_maxima, kLossWarps);
  BAMTRAIN_SHARED(float, maxima, kLossWarps);
  BAMTRAIN_SHARED(double, sums, kLossWarps);
  float* const kept = reinterpret_cast<float*>(shared);
  const int thread = static_cast<int>(device::thread_index().x);
  const int64_t r = device::block_index().x;
  const int V = static_cast<int>(c.V);
  const int target = c.targets[r];
  if (target == kIgnoreIndex) {
    clear_row(c, r);
    return;
  }
  const float* const logits = c.logits + r * c.logits_row;

  // Starting from the highest logit of the first tile, a thread's own highest seldom changes. So
  // the rescaling can be exact: fp64.
  float x[kLossVectors][4];
  load_logits(x, logits, 0, V);
  float own_highest = block_max<kLossWarps>(highest_logit(x, kLowestLogit), first_maxima);
  double sum = 0;
  const int tiles = (V + kLossTile - 1) / kLossTile;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) {
      load_logits(x, logits, tile, V);
      const float highest = highest_logit(x, own_highest);
      if (highest > own_highest) {
        sum *= exp(static_cast<double>(own_highest) - static_cast<double>(highest));
        own_highest = highest;
      }
    }
    if (tile < kept_tiles) {
      BAMTRAIN_UNROLL
      for (int j = 0; j < kLossVectors; ++j) store_vector(kept + 4 * logit_vector(tile, j), x[j]);
    }
    sum += static_cast<double>(sum_of_exponentials(x, own_highest));
  }
  const float highest = block_max<kLossWarps>(own_highest, maxima);
  if (own_highest != highest) {
    sum *= exp(static_cast<double>(own_highest) - static_cast<double>(highest));
  }
  sum = block_sum<kLossWarps>(sum, sums);

  // The thread that reads the target's logit also overwrites it if dlogits is the logits' memory.
  const bool owns_target = target / 4 % kLossThreads == thread;
  double of_target = 0;
  if (owns_target) {
    const double z = static_cast<double>(logits[target]) - static_cast<double>(highest);
    c.losses[r] = static_cast<float>(log(sum) - z);
    of_target = c.scale * (exp(z) / sum - 1);
  }
  if (c.dlogits == nullptr) return;

  A* const dlogits = c.dlogits + r * c.dlogits_row;
  const int row_end = static_cast<int>(c.dlogits_row);
  const float factor = static_cast<float>(c.scale) / static_cast<float>(sum);
  // Latest first: those are still in the caches.
  for (int tile = (row_end + kLossTile - 1) / kLossTile - 1; tile >= 0; --tile) {
    if (tile < kept_tiles) {
      BAMTRAIN_UNROLL
      for (int j = 0; j < kLossVectors; ++j) load_vector(x[j], kept + 4 * logit_vector(tile, j));
    } else {
      load_logits(x, logits, tile, V);
    }
    BAMTRAIN_UNROLL
    for (int j = 0; j < kLossVectors; ++j) {
      const int first = 4 * logit_vector(tile, j);
      if (first >= row_end) continue;
      float y[4];
      BAMTRAIN_UNROLL
      for (int n = 0; n < 4; ++n) {
        y[n] = first + n < V ? exp_of_difference(x[j][n] - highest) * factor : 0.0f;
      }
      store_four(dlogits + first, y);
    }
  }
  if (owns_target) store_one(dlogits + target, static_cast<float>(of_target));
}

bool is_loss_row(int64_t row, int64_t V) { return row % 4 == 0 && row >= V && row <= kLossLimit; }

}  // namespace

template <class A>
LaunchStatus cross_entropy(const CrossEntropy<A>& c, Stream stream) {
  if (c.R < 1 || c.R > kLossLimit) return device::refused("cross_entropy: R rows, 1 to 2^30");
  if (c.V < 1 || c.V > kLossLimit) return device::refused("cross_entropy: V logits, 1 to 2^30");
  if (!is_loss_row(c.logits_row, c.V)) {
    return device::refused("cross_entropy: logits_row, a multiple of 4 of at least V");
  }
  if (c.logits == nullptr || !aligned(c.logits)) {
    return device::refused("cross_entropy: logits aligned to 16 bytes");
  }
  if (c.losses == nullptr || c.targets == nullptr) {
    return device::refused("cross_entropy: losses and targets");
  }
  if (c.dlogits != nullptr) {
    if (!is_loss_row(c.dlogits_row, c.V)) {
      return device::refused("cross_entropy: dlogits_row, a multiple of 4 of at least V");
    }
    if (reinterpret_cast<uintptr_t>(c.dlogits) % (4 * sizeof(A)) != 0) {
      return device::refused("cross_entropy: dlogits aligned to 4 elements");
    }
    const bool in_place = static_cast<const void*>(c.dlogits) == c.logits;
    if (in_place && (sizeof(A) != sizeof(float) || c.dlogits_row != c.logits_row)) {
      return device::refused("cross_entropy: in place, float and rows of one length");
    }
  }
  const int64_t tiles = c.dlogits == nullptr ? 0 : blocks_of(c.V, kLossTile);
  const int kept_tiles = static_cast<int>(tiles < kLossKeptTiles ? tiles : kLossKeptTiles);
  return device::launch(cross_entropy_row<A>, grid_of(c.R), {kLossThreads, 1, 1},
                        static_cast<size_t>(kept_tiles) * kLossTileBytes, stream, c, kept_tiles);
}

template LaunchStatus cross_entropy<float>(const CrossEntropy<float>&, Stream);
template LaunchStatus cross_entropy<bf16>(const CrossEntropy<bf16>&, Stream);

}  // namespace bamtrain::kernels

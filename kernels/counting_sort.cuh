#pragma once
// A stable counting sort of small keys, without atomics. Three kernels per digit, from the lowest.
// count_digits counts each value of the digit in each tile of the list. scan_tiles turns a value's
// counts into prefix sums over tiles. place_keys moves each key to its place.

#include "arguments.h"
#include "device.cuh"

namespace bamtrain::kernels {

constexpr int kSortWarps = 8;
constexpr int kSortThreads = 32 * kSortWarps;
constexpr int kSortRounds = 8;  // of 32 keys, per warp; a warp's keys are contiguous
constexpr int kSortTile = kSortThreads * kSortRounds;
constexpr int kSortBits = 9;
constexpr int kSortDigits = 1 << kSortBits;

/// Nonnegative keys, and each one's index in the original list.
struct SortedKeys {
  int32_t* key = nullptr;
  int32_t* origin = nullptr;
};

struct Digit {
  int shift = 0, bits = 0;

  BAMTRAIN_BOTH int values() const { return 1 << bits; }
  BAMTRAIN_DEVICE int of(int32_t key) const { return key >> shift & (values() - 1); }
};

BAMTRAIN_DEVICE int bits_set(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0F0F0F0Fu;
  return static_cast<int>(x * 0x01010101u >> 24);
}

/// The sum of x over the threads before this one; `total`: over the whole block. `scratch`: as for
/// block_sum.
template <int kWarps>
BAMTRAIN_DEVICE int sum_before(int x, int& total, int (&scratch)[kWarps]) {
  const int thread = static_cast<int>(device::thread_index().x);
  const int warp = thread / 32, lane = thread % 32;
  int sum = x;
  BAMTRAIN_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    const int below = device::shuffle_up(device::kWholeWarp, sum, distance);
    if (lane >= distance) sum += below;
  }
  if (lane == 31) scratch[warp] = sum;
  device::barrier();
  int before = sum - x;
  total = 0;
  BAMTRAIN_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += scratch[w];
    total += scratch[w];
  }
  return before;
}

/// A thread's part of a tile: key r is at first + 32 r. Counts in shared memory hold how often each
/// digit has occurred among the warp's keys.
struct TileKeys {
  int32_t key[kSortRounds];
  uint32_t same[kSortRounds];  // lanes with the same digit
  int64_t first;
  int lane;
  int* counts;  // (kSortDigits), the warp's

  BAMTRAIN_DEVICE TileKeys(const int32_t* keys, int64_t N, Digit digit, int* all_counts) {
    const int thread = static_cast<int>(device::thread_index().x);
    lane = thread % 32;
    counts = all_counts + thread / 32 * kSortDigits;
    first = static_cast<int64_t>(device::block_index().x) * kSortTile +
            thread / 32 * (32 * kSortRounds) + lane;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kSortRounds; ++r) key[r] = first + 32 * r < N ? keys[first + 32 * r] : -1;
    for (int d = lane; d < digit.values(); d += 32) counts[d] = 0;
    device::sync_warp();
    BAMTRAIN_UNROLL
    for (int r = 0; r < kSortRounds; ++r) {
      same[r] = device::ballot(device::kWholeWarp, key[r] >= 0);
      for (int b = 0; b < digit.bits; ++b) {
        const bool one = key[r] >> (digit.shift + b) & 1;
        const uint32_t ones = device::ballot(device::kWholeWarp, one);
        same[r] &= one ? ones : ~ones;
      }
    }
  }

  /// The number of lower lanes with the same digit in round r.
  BAMTRAIN_DEVICE int rank(int r) const { return bits_set(same[r] & ((1u << lane) - 1)); }

  /// Counts the digits of round r. All lanes of the warp call.
  BAMTRAIN_DEVICE void count(int r, Digit digit) const {
    if (key[r] >= 0 && rank(r) == 0) counts[digit.of(key[r])] += bits_set(same[r]);
    device::sync_warp();
  }
};

/// counts (values of the digit, tiles).
template <int kWarps>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kWarps)
    count_digits(int32_t* counts, const int32_t* keys, int64_t N, Digit digit) {
  BAMTRAIN_SHARED(int, warp_counts, kWarps* kSortDigits);
  const TileKeys tile(keys, N, digit, warp_counts);
  BAMTRAIN_UNROLL
  for (int r = 0; r < kSortRounds; ++r) tile.count(r, digit);
  device::barrier();
  const int64_t tiles = device::grid_size().x;
  for (int d = static_cast<int>(device::thread_index().x); d < digit.values(); d += 32 * kWarps) {
    int sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += warp_counts[w * kSortDigits + d];
    counts[d * tiles + device::block_index().x] = sum;
  }
}

/// Turns counts (values, tiles) into sums over the preceding tiles; totals (values): over all
/// tiles. One block per value.
template <int kWarps>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kWarps)
    scan_tiles(int32_t* counts, int32_t* totals, int tiles) {
  BAMTRAIN_SHARED(int, scratch, kWarps);
  const int thread = static_cast<int>(device::thread_index().x);
  int32_t* row = counts + static_cast<int64_t>(device::block_index().x) * tiles;
  int sum = 0;
  for (int first = 0; first < tiles; first += 32 * kWarps) {
    const bool inside = first + thread < tiles;
    int total;
    const int before = sum_before(inside ? row[first + thread] : 0, total, scratch);
    if (inside) row[first + thread] = sum + before;
    sum += total;
    device::barrier();
  }
  if (thread == 0) totals[device::block_index().x] = sum;
}

/// `keys` sorted by the digit, equal ones in their order. Null `origins`: the keys are the original
/// list. counts and totals: as scan_tiles leaves them.
template <int kWarps>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kWarps)
    place_keys(SortedKeys to, const int32_t* keys, const int32_t* origins, const int32_t* counts,
               const int32_t* totals, int64_t N, Digit digit) {
  constexpr int kPerThread = kSortDigits / (32 * kWarps);
  BAMTRAIN_SHARED(int, warp_counts, kWarps* kSortDigits);
  BAMTRAIN_SHARED(int, scratch, kWarps);
  const int thread = static_cast<int>(device::thread_index().x);
  const int64_t tiles = device::grid_size().x;
  const TileKeys tile(keys, N, digit, warp_counts);
  BAMTRAIN_UNROLL
  for (int r = 0; r < kSortRounds; ++r) tile.count(r, digit);

  // Where the keys of each digit begin: in the list, in this tile's part, in each warp's part.
  int own[kPerThread], sum = 0, total;
  BAMTRAIN_UNROLL
  for (int k = 0; k < kPerThread; ++k) {
    const int d = thread * kPerThread + k;
    own[k] = d < digit.values() ? totals[d] : 0;
    sum += own[k];
  }
  int begin = sum_before(sum, total, scratch);  // its barrier also orders all warps' counts
  BAMTRAIN_UNROLL
  for (int k = 0; k < kPerThread; ++k) {
    const int d = thread * kPerThread + k;
    if (d >= digit.values()) break;
    int at = begin + counts[d * tiles + device::block_index().x];
    for (int w = 0; w < kWarps; ++w) {
      const int count = warp_counts[w * kSortDigits + d];
      warp_counts[w * kSortDigits + d] = at;
      at += count;
    }
    begin += own[k];
  }
  device::barrier();
  BAMTRAIN_UNROLL
  for (int r = 0; r < kSortRounds; ++r) {
    if (tile.key[r] >= 0) {
      const int at = tile.counts[digit.of(tile.key[r])] + tile.rank(r);
      const int64_t from = tile.first + 32 * r;
      to.key[at] = tile.key[r];
      to.origin[at] = origins == nullptr ? static_cast<int32_t>(from) : origins[from];
    }
    device::sync_warp();
    tile.count(r, digit);
  }
}

constexpr int64_t sort_tiles(int64_t N) { return blocks_of(N, kSortTile); }

/// Sorts `keys` (N), all in [0, limit), limit <= 2^18, by one digit or by two via `between`.
/// counts: kSortDigits (sort_tiles(N) + 1) of scratch.
inline device::LaunchStatus sort_keys(SortedKeys to, SortedKeys between, const int32_t* keys,
                                      int64_t N, int limit, int32_t* counts,
                                      device::Stream stream) {
  int bits = 1;
  while (1 << bits < limit) ++bits;
  const int64_t tiles = sort_tiles(N);
  int32_t* totals = counts + kSortDigits * tiles;
  const device::Dim3 block{kSortThreads, 1, 1};
  const auto by_digit = [&](SortedKeys out, const int32_t* in, const int32_t* origins,
                            Digit digit) {
    device::LaunchStatus status = device::launch(count_digits<kSortWarps>, grid_of(tiles), block, 0,
                                                 stream, counts, in, N, digit);
    if (!status.ok()) return status;
    status = device::launch(scan_tiles<kSortWarps>, grid_of(digit.values()), block, 0, stream,
                            counts, totals, tiles);
    if (!status.ok()) return status;
    return device::launch(place_keys<kSortWarps>, grid_of(tiles), block, 0, stream, out, in,
                          origins, counts, totals, N, digit);
  };
  if (bits <= kSortBits) return by_digit(to, keys, nullptr, {0, bits});
  const int low = bits / 2;
  const device::LaunchStatus status = by_digit(between, keys, nullptr, {0, low});
  if (!status.ok()) return status;
  return by_digit(to, between.key, between.origin, {low, bits - low});
}

}  // namespace bamtrain::kernels

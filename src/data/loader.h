#pragma once
// Reads a step's batches from shards.

#include <cstdint>
#include <memory>
#include <vector>

#include "data/interleave.h"
#include "data/read_ahead.h"
#include "data/shard_set.h"

namespace bamtrain {

/// Shards and their weight in a mixture.
struct Source {
  std::shared_ptr<const ShardSet> shards;
  double weight = 1;
};

/// The infinite sequence of training windows. A window is T + 1 tokens of one shard: T inputs and,
/// shifted by one, T targets. Windows start every T tokens, so every token of a shard but the first
/// is a target once per epoch, except up to T - 1 at the shard's end. Window number n of a source
/// is epoch * windows_per_epoch() + position. With `shuffle`, each epoch permutes the positions
/// anew; otherwise they follow the shards. Interleave picks the source by weight; each source
/// counts its own windows and epochs, in the same order as without the others. Window k of the
/// mixture is a pure function of (sources, T, seed, shuffle, k), whichever process or thread reads
/// it and in whatever order.
class Loader {
 public:
  /// Throws Error (ExitCode::data) if a source has no shard of T + 1 tokens, or if the manifests of
  /// two sources name different tokenizers or document starts. REQUIRES: sequence_length >= 1;
  /// weights as for Interleave.
  Loader(std::vector<Source> sources, int64_t sequence_length, uint64_t seed, bool shuffle);
  /// A single source.
  Loader(std::shared_ptr<const ShardSet> shards, int64_t sequence_length, uint64_t seed,
         bool shuffle);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t sequence_length() const { return sequence_length_; }
  int64_t windows_per_epoch(size_t source = 0) const { return window_ends_[source].back(); }
  const std::vector<Source>& sources() const { return sources_; }

  /// Reads windows first, ..., first + count - 1 into `out` (count, T + 1). Copies them from a
  /// prefetched range that covers them all, waiting if it is in progress; otherwise reads them
  /// itself. Errors: as Shard::read. REQUIRES: first, count >= 0. Thread-safe.
  void read(int64_t first, int64_t count, int32_t* out) const;

  /// Allocates ahead_bytes(count, T) bytes for prefetches of up to `count` windows and starts the
  /// thread that reads them; no later call allocates either. Throws std::system_error if the thread
  /// cannot start. REQUIRES: count >= 0; before the first prefetch.
  void reserve_ahead(int64_t count);
  static int64_t ahead_bytes(int64_t count, int64_t sequence_length) {
    return ReadAhead::kRanges * count * (sequence_length + 1) *
           static_cast<int64_t>(sizeof(int32_t));
  }

  /// Hints that a later read will lie inside windows [first, first + count). A background thread
  /// reads them into memory in the order of the hints, so the disk is waited for there. Returns at
  /// once. Keeps ReadAhead::kRanges hints, for the current step and two more; another hint replaces
  /// the oldest. Hints change no result; a background error appears in the read that needs the
  /// window. REQUIRES: first, count >= 0. Thread-safe.
  void prefetch(int64_t first, int64_t count);

 private:
  DocumentSpan window(size_t source, int64_t position) const;
  template <class F>
  void for_each_window(int64_t first, int64_t count, F&& f) const;
  void announce(int64_t first, int64_t count) const;
  template <class F>
  void read_here(int64_t first, int64_t count, int32_t* out, F&& arrived) const;

  std::vector<Source> sources_;
  Interleave order_;
  int64_t sequence_length_;
  uint64_t seed_;
  bool shuffle_;
  std::vector<std::vector<int64_t>> window_ends_;  // cumulative window counts, by source and shard
  mutable ReadAhead ahead_;                        // last: its thread reads the members above
};

}  // namespace bamtrain

#pragma once
// From shards to the batches of a step.

#include <cstdint>
#include <memory>
#include <vector>

#include "data/interleave.h"
#include "data/read_ahead.h"
#include "data/shard_set.h"

namespace bamtrain {

/// Shards and their part in a mixture.
struct Source {
  std::shared_ptr<const ShardSet> shards;
  double weight = 1;
};

/// The infinite sequence of training windows. A window is T + 1 tokens of one shard (T inputs and,
/// one further, T targets); windows start every T tokens, so that every token but the first of a
/// shard is a target once an epoch, up to fewer than T at the shard's end. Window number
/// n = epoch * windows_per_epoch() + position of a source; with `shuffle` positions are permuted
/// anew in each epoch, otherwise they follow the shards. Sources take turns by their weights
/// (Interleave); each counts its own windows and epochs, in the order that it has alone. What
/// number k of the whole holds is a pure function of (sources, T, seed, shuffle, k), whoever asks,
/// in whatever order.
class Loader {
 public:
  /// Error (ExitCode::data) where no shard of a source has T + 1 tokens, or manifests of two
  /// sources name different tokenizers or document starts. REQUIRES: sequence_length >= 1; weights
  /// as Interleave takes them.
  Loader(std::vector<Source> sources, int64_t sequence_length, uint64_t seed, bool shuffle);
  /// Of one source.
  Loader(std::shared_ptr<const ShardSet> shards, int64_t sequence_length, uint64_t seed,
         bool shuffle);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t sequence_length() const { return sequence_length_; }
  int64_t windows_per_epoch(size_t source = 0) const { return window_ends_[source].back(); }
  const std::vector<Source>& sources() const { return sources_; }

  /// Windows first, ..., first + count - 1 into `out` (count, T + 1). Takes from memory what
  /// prefetch made ready (waiting for it where that is still under way) and reads the rest here.
  /// Errors: as Shard::read. REQUIRES: first, count >= 0. Thread-safe.
  void read(int64_t first, int64_t count, int32_t* out) const;

  /// Memory for prefetches of up to `count` windows, ahead_bytes(count, T), and the thread that
  /// reads them: from here on neither is taken again. std::system_error where no thread can be had.
  /// REQUIRES: count >= 0; before the first prefetch.
  void reserve_ahead(int64_t count);
  static int64_t ahead_bytes(int64_t count, int64_t sequence_length) {
    return ReadAhead::kRanges * count * (sequence_length + 1) *
           static_cast<int64_t>(sizeof(int32_t));
  }

  /// A hint that a later read will lie inside windows [first, first + count): a background thread
  /// reads them into memory, in the order of the hints, so that the disk is waited for there.
  /// Returns at once. ReadAhead::kRanges hints are kept: that of the step being read and two more;
  /// another takes the place of the oldest. Hints change no result; an error in the background
  /// shows in the read that meets it. REQUIRES: first, count >= 0. Thread-safe.
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
  std::vector<std::vector<int64_t>> window_ends_;  // running number of windows, by source and shard
  mutable ReadAhead ahead_;                        // last: its thread reads the members above
};

}  // namespace bamtrain

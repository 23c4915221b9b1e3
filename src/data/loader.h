#pragma once
// From a folder of shards to the batches of a step.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/interleave.h"
#include "data/manifest.h"
#include "data/shard.h"

namespace bamtrain {

/// Consecutive tokens of one shard of a ShardSet: a document, or any part of one.
struct DocumentSpan {
  int64_t shard = 0;
  int64_t begin = 0;
  int64_t length = 0;
  bool operator==(const DocumentSpan&) const = default;
};

/// Shards that are trained on together, and their manifest. Immutable; any number of threads may
/// read. Opening reads headers only.
class ShardSet {
 public:
  /// `folder_or_glob`: a folder stands for all of its *.bin, anything else is a pattern of glob(3)
  /// (llm.c's flat layout: "fineweb10B/fineweb_train_*.bin"; one file is a pattern too). Shards are
  /// taken in the byte order of their names and must lie in one folder. A folder that mixes llm.c's
  /// *_train_* with *_val_* is refused, so that nobody trains on validation text unawares.
  /// The folder's manifest.json, where there is one, must list every shard with the token count
  /// that it has. Where a folder was given, every shard of the manifest must be there; a pattern
  /// may leave some out.
  /// `vocab`: the model's. The manifest's is at most that; ids are checked as they are read.
  ///
  /// Error (ExitCode::data) where there is no shard, a shard is bad (see Shard::open), or the
  /// folder or its manifest is bad or does not fit; (ExitCode::io) where the system refuses to
  /// read. REQUIRES: 1 <= vocab <= 2^31.
  static ShardSet open(const std::string& folder_or_glob, int64_t vocab);

  const std::string& source() const { return source_; }  // as given to open, for messages
  int64_t vocab() const { return vocab_; }
  int64_t tokens() const { return tokens_; }
  int64_t size() const { return static_cast<int64_t>(shards_.size()); }
  const Shard& shard(int64_t i) const { return shards_[static_cast<size_t>(i)]; }

  const std::optional<Manifest>& manifest() const { return manifest_; }
  /// The manifest's; empty where it names none or there is no manifest.
  std::optional<int64_t> document_start() const;

  /// SHA-256 over base names, sizes and headers of the shards and the bytes of the manifest, not
  /// over the tokens: it tells another data set from this one at any size at once; `bamdata verify`
  /// compares the tokens with the manifest's hashes.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Every document, in order: each begins at a token `document_start` and ends before the next or
  /// with its shard. Tokens before the first start in a shard continue a document of the shard
  /// before and are left out. Reads all tokens.
  /// Error (ExitCode::config) where the id is outside the vocabulary.
  std::vector<DocumentSpan> documents(int64_t document_start) const;

  /// The tokens of `span` into out[0, span.length). Errors: as Shard::read.
  void read_span(const DocumentSpan& span, int32_t* out) const;

 private:
  ShardSet() = default;
  void check_manifest(const std::string& path, bool complete) const;

  std::string source_;
  int64_t vocab_ = 0;
  int64_t tokens_ = 0;
  std::vector<Shard> shards_;
  std::optional<Manifest> manifest_;
  std::string fingerprint_;
};

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
  ~Loader();

  int64_t sequence_length() const { return sequence_length_; }
  int64_t windows_per_epoch(size_t source = 0) const { return window_ends_[source].back(); }
  const std::vector<Source>& sources() const { return sources_; }

  /// Windows first, ..., first + count - 1 into `out` (count, T + 1). Takes from memory what
  /// prefetch made ready (waiting for it where that is still under way) and reads the rest here.
  /// Errors: as Shard::read. REQUIRES: first, count >= 0. Thread-safe.
  void read(int64_t first, int64_t count, int32_t* out) const;

  /// A hint that a later read will lie inside windows [first, first + count): a background thread
  /// reads them into memory, so that the disk is waited for there. Returns at once. Two
  /// hints are kept, the step being read and the next one: a third takes the place of the older, or
  /// is dropped where that one is just being read. Hints change no result; an error in the
  /// background shows in the read that meets it. Memory: 2 x count x (T + 1) x 4 bytes. REQUIRES:
  /// first, count >= 0. Thread-safe.
  void prefetch(int64_t first, int64_t count);

 private:
  class ReadAhead;

  DocumentSpan window(size_t source, int64_t position) const;
  template <class F>
  void for_each_window(int64_t first, int64_t count, F&& f) const;
  void read_here(int64_t first, int64_t count, int32_t* out) const;

  std::vector<Source> sources_;
  Interleave order_;
  int64_t sequence_length_;
  uint64_t seed_;
  bool shuffle_;
  std::vector<std::vector<int64_t>> window_ends_;  // running number of windows, by source and shard
  std::unique_ptr<ReadAhead> ahead_;               // last: its thread reads the members above
};

}  // namespace bamtrain

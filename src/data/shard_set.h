#pragma once
// A folder of shards, and the manifest beside them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
/// read. Opening reads headers and a sample of tokens.
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
  /// The id that begins a document: `configured` (data.document_start), or else the manifest's;
  /// empty where neither names one. Error (ExitCode::config) where both do, and not the same.
  std::optional<int64_t> document_start(std::optional<int64_t> configured) const;
  /// What to do where that is empty, for messages: it gives the first token of all, with which the
  /// sets of other programs begin their first document.
  std::string document_start_remedy() const;

  /// SHA-256 over base names, sizes and headers of the shards and the bytes of the manifest, not
  /// over the tokens: it tells another data set from this one at any size at once; `bamdata verify`
  /// compares the tokens with the manifest's hashes.
  const std::string& fingerprint() const { return fingerprint_; }

  /// SHA-256 over some tokens of each shard, as they were when it was opened: kSamples stretches of
  /// kSampleTokens, evenly from its first token to its last. It tells a shard that was written over
  /// whole; one that was in a place between two of these is for `bamdata verify` to find.
  const std::string& sample() const { return sample_; }
  static constexpr int64_t kSamples = 4, kSampleTokens = 256;

  /// Every document, in order: each begins at a token `document_start` and ends before the next or
  /// with its shard. Tokens before the first start in a shard continue a document of the shard
  /// before and are left out. Reads all tokens.
  /// Error (ExitCode::config) where the id is outside the vocabulary.
  std::vector<DocumentSpan> documents(int64_t document_start) const;

  /// How many of the first `most` tokens, or of all where there are fewer, are `id`. Errors: as
  /// Shard::read. REQUIRES: most >= 0.
  int64_t count(int64_t id, int64_t most) const;

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
  std::string fingerprint_, sample_;
};

}  // namespace bamtrain

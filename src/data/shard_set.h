#pragma once
// A folder of shards and its manifest.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/manifest.h"
#include "data/shard.h"

namespace bamtrain {

/// Consecutive tokens of one shard: a document, or any part of one.
struct DocumentSpan {
  int64_t shard = 0;
  int64_t begin = 0;
  int64_t length = 0;
  bool operator==(const DocumentSpan&) const = default;
};

/// Shards that are trained on together, and their manifest. Immutable and thread-safe. Opening
/// reads headers and a sample of tokens.
class ShardSet {
 public:
  /// `folder_or_glob`: a folder stands for all its *.bin; anything else is a glob(3) pattern
  /// (llm.c's flat layout: "fineweb10B/fineweb_train_*.bin"; a single file is a pattern too).
  /// Shards are ordered by name, bytewise, and must lie in one folder. A folder that mixes llm.c's
  /// *_train_* with *_val_* is refused, so that nobody trains on validation text by accident. The
  /// folder's manifest.json, if present, must list every shard with its actual token count. For a
  /// folder, every shard of the manifest must be present; a pattern may omit some.
  /// `vocab`: the model's. The manifest's may be at most that; ids are checked as they are read.
  ///
  /// Throws Error (ExitCode::data) if there is no shard, a shard is bad (see Shard::open), or the
  /// folder or its manifest is bad or does not fit. Throws Error (ExitCode::io) if the system
  /// refuses to read. REQUIRES: 1 <= vocab <= 2^31.
  static ShardSet open(const std::string& folder_or_glob, int64_t vocab);

  const std::string& source() const { return source_; }  // as given to open, for messages
  int64_t vocab() const { return vocab_; }
  int64_t tokens() const { return tokens_; }
  int64_t size() const { return static_cast<int64_t>(shards_.size()); }
  const Shard& shard(int64_t i) const { return shards_[static_cast<size_t>(i)]; }

  const std::optional<Manifest>& manifest() const { return manifest_; }
  /// The id that begins a document: `configured` (data.document_start), else the manifest's; empty
  /// if neither is set. Throws Error (ExitCode::config) if both are set and differ.
  std::optional<int64_t> document_start(std::optional<int64_t> configured) const;
  /// Remedy for messages if it is empty. It names the first token of the set: other programs' sets
  /// begin their first document with it.
  std::string document_start_remedy() const;

  /// SHA-256 over the shards' base names, sizes and headers and the manifest's bytes, but not the
  /// tokens. It detects a different data set instantly, at any size; `bamdata verify` compares the
  /// tokens with the manifest's hashes.
  const std::string& fingerprint() const { return fingerprint_; }

  /// SHA-256 over some tokens of each shard, as they were when it was opened: kSamples stretches of
  /// kSampleTokens, spaced evenly from its first token to its last. It detects a shard that was
  /// overwritten; changes between the samples are left to `bamdata verify`.
  const std::string& sample() const { return sample_; }
  static constexpr int64_t kSamples = 4, kSampleTokens = 256;

  /// Every document, in order: each begins at a token `document_start` and ends before the next one
  /// or at its shard's end. Tokens before a shard's first start continue a document of the previous
  /// shard and are omitted. Reads all tokens. Throws Error (ExitCode::config) if the id is outside
  /// the vocabulary.
  std::vector<DocumentSpan> documents(int64_t document_start) const;

  /// How many of the first min(most, tokens()) tokens are `id`. Errors: as Shard::read. REQUIRES:
  /// most >= 0.
  int64_t count(int64_t id, int64_t most) const;

  /// Reads the tokens of `span` into out[0, span.length). Errors: as Shard::read.
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

/// A remedy where `folder` has no shards: "did you mean FOLDER/train or FOLDER/val?", those of the
/// two that have some; `otherwise` if neither does.
std::string shards_below(const std::string& folder, const std::string& otherwise);

}  // namespace bamtrain

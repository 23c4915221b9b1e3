#pragma once
// Writes documents to the shards of one folder, its manifest and the tokenizer next to them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/manifest.h"
#include "data/shard.h"
#include "data/tokenizer.h"
#include "data/tokenizer_file.h"

namespace bamtrain {

/// Receives documents one by one.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  /// Adds the next document, or the rest of one that begins elsewhere. REQUIRES: not empty.
  virtual void append(std::span<const int32_t> document) = 0;
};

/// Writes 000000.bin, 000001.bin, ... A document is never split over shards: a shard is closed
/// after the document with which it reaches its size, or before one that would exceed the format's
/// token count.
class ShardSetWriter : public DocumentSink {
 public:
  /// Progress of a set: its shards so far; the last may be open, without a hash.
  using State = std::vector<Manifest::ShardEntry>;

  /// Tokens take 2 bytes if the vocabulary has at most 65,536 ids, else 4. Reads the tokenizer's
  /// file, so that it may be gone when the set is finished. Throws Error (data) if a shard has
  /// fewer tokens than the state says, and as TokenizerFile. REQUIRES: `folder` exists and has the
  /// content for which `sync` returned `state`; shard_tokens >= 1; the tokenizer has a BOS, with
  /// which every document begins, and a name without tokenizer_name_fault.
  ShardSetWriter(const std::string& folder, const Tokenizer& tokenizer, int64_t shard_tokens,
                 State state = {});

  /// Errors: as ShardWriter.
  void append(std::span<const int32_t> document) override;

  /// Flushes appended documents to disk and returns the state to resume from. Errors: as
  /// ShardWriter.
  State sync();

  /// Writes the last shard, the manifest and then the tokenizer's file to disk: a killed process
  /// leaves no tokenizer that its manifest does not name. Errors: as ShardWriter, write_manifest
  /// and TokenizerFile::write. REQUIRES: called once, after at least one document.
  Manifest finish();

  int64_t documents() const { return manifest_.documents; }
  int64_t tokens() const { return manifest_.tokens; }
  static int width_of(const Tokenizer& tokenizer) { return tokenizer.vocab() <= 65536 ? 2 : 4; }

 private:
  std::string path_of(const Manifest::ShardEntry& entry) const {
    return folder_ + "/" + entry.file;
  }
  void close_shard();

  std::string folder_;
  int width_;
  int64_t shard_tokens_;
  TokenizerFile tokenizer_;
  Manifest manifest_;
  std::optional<ShardWriter> shard_;  // the open shard
};

}  // namespace bamtrain

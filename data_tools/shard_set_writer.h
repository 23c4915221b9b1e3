#pragma once
// Documents into the shards of one folder, and its manifest.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/manifest.h"
#include "data/shard.h"
#include "data/tokenizer.h"

namespace bamtrain {

/// Whatever takes documents one after the other.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  /// The next document, or what is left of one whose beginning lies elsewhere. REQUIRES: not empty.
  virtual void append(std::span<const int32_t> document) = 0;
};

/// Writes 000000.bin, 000001.bin, ... A document lies whole within one shard: a shard is closed
/// after the document with which it reaches its size (or, where a document would take it past what
/// the format can count, before).
class ShardSetWriter : public DocumentSink {
 public:
  /// How far a set is: its shards so far, the last of them perhaps open, without a hash.
  using State = std::vector<Manifest::ShardEntry>;

  /// `folder` exists, and holds what `sync` returned `state` for. Tokens take 2 bytes where the
  /// vocabulary has at most 65,536 ids, else 4. Error (data) where a shard of the state has less
  /// than it says.
  /// REQUIRES: shard_tokens >= 1; the tokenizer has a BOS, with which every document begins.
  ShardSetWriter(const std::string& folder, const Tokenizer& tokenizer, int64_t shard_tokens,
                 State state = {});

  /// Errors: as ShardWriter.
  void append(std::span<const int32_t> document) override;

  /// What was appended is on the disk, in the state that is returned. Errors: as ShardWriter.
  State sync();

  /// The last shard and the manifest reach the disk. Errors: as ShardWriter and write_manifest.
  /// REQUIRES: called once, after at least one document.
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
  Manifest manifest_;
  std::optional<ShardWriter> shard_;  // the open one
};

}  // namespace bamtrain

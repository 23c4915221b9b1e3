#pragma once
// Documents into the shards of one folder, and its manifest.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/manifest.h"
#include "data/shard.h"
#include "data/tokenizer.h"

namespace bamtrain {

/// Writes 000000.bin, 000001.bin, ... A document lies whole within one shard: a shard is closed
/// after the document with which it reaches its size (or, where a document would take it past what
/// the format can count, before).
class ShardSetWriter {
 public:
  /// `folder` exists. Tokens take 2 bytes where the vocabulary has at most 65,536 ids, else 4.
  /// REQUIRES: shard_tokens >= 1; the tokenizer has a BOS, with which every document begins.
  ShardSetWriter(const std::string& folder, const Tokenizer& tokenizer, int64_t shard_tokens);

  /// Errors: as ShardWriter. REQUIRES: `document` is not empty.
  void append(std::span<const int32_t> document);

  /// The last shard and the manifest reach the disk. Errors: as ShardWriter and write_manifest.
  /// REQUIRES: called once, after at least one document.
  Manifest finish();

  int64_t documents() const { return manifest_.documents; }
  int64_t tokens() const { return manifest_.tokens; }

 private:
  void close_shard();

  std::string folder_;
  int width_;
  int64_t shard_tokens_;
  Manifest manifest_;
  std::optional<ShardWriter> shard_;  // the open one
};

}  // namespace bamtrain

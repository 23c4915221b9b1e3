#pragma once
// Token shards in llm.c's format, little-endian: a header of 256 int32 (magic, version, number of
// tokens, zeros), then the tokens.
//
//   width 2: magic 20240520, version 1, uint16 tokens
//   width 4: magic 20240801, version 7, uint32 tokens (vocabularies past 65,536)

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/durable_file.h"

namespace bamtrain {

struct ShardFormat {
  static constexpr int64_t kHeaderInts = 256;
  static constexpr int64_t kHeaderBytes = kHeaderInts * 4;
  static constexpr int64_t kMaxTokens = 0x7FFFFFFF;  // the count is an int32

  int width = 0;        // bytes per token
  int32_t magic = 0;    // header[0]
  int32_t version = 0;  // header[1]

  /// REQUIRES: width 2 or 4.
  static ShardFormat of_width(int width);
};

/// A memory-mapped shard. Opening reads the header only, so it costs the same at any size.
/// Any number of threads may read. The file must not shrink while it is open: touching a page that
/// is gone ends the process (SIGBUS).
class Shard {
 public:
  /// Error (ExitCode::data) where the file is missing, empty, truncated, has trailing bytes, or
  /// another magic, version or token count than its size says; (ExitCode::io) where the system
  /// refuses to open, read or map it.
  static Shard open(const std::string& path);

  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;
  ~Shard();

  const std::string& path() const { return path_; }
  int64_t tokens() const { return tokens_; }
  int width() const { return width_; }  // 2 or 4 bytes per token
  int64_t file_bytes() const { return file_bytes_; }
  /// The header as it stands in the file, ShardFormat::kHeaderBytes bytes.
  std::span<const std::byte> header() const;

  /// Tokens [begin, begin + count) into out[0, count). Error (ExitCode::data) naming the file, the
  /// position and the id where an id is `vocab` or more; `out` is unspecified then.
  /// REQUIRES: 0 <= begin, 0 <= count, begin + count <= tokens(), 1 <= vocab <= 2^31.
  void read(int64_t begin, int64_t count, int32_t* out, int64_t vocab) const;

  /// The position of the first token `id` at or after `begin`; tokens() where there is none.
  /// REQUIRES: 0 <= begin <= tokens().
  int64_t find(int64_t begin, int64_t id) const;

  /// Asks the system to start reading these tokens from disk; returns at once. REQUIRES: as read.
  void will_need(int64_t begin, int64_t count) const;

 private:
  Shard() = default;
  void unmap();

  std::string path_;
  const std::byte* map_ = nullptr;
  int64_t file_bytes_ = 0;
  int64_t tokens_ = 0;
  int width_ = 0;
};

/// Writes one shard, an AtomicFile: it appears under its name only in finish(), complete and on
/// disk, and not at all where the writer is destroyed unfinished. Every member may throw Error
/// (ExitCode::io) for a full disk or a path that cannot be written; the writer is good for nothing
/// but destruction afterwards.
class ShardWriter {
 public:
  /// REQUIRES: width 2 or 4. The folder of `path` must exist.
  ShardWriter(const std::string& path, int width);

  /// Error (ExitCode::data) for an id that the width cannot hold, and past kMaxTokens tokens.
  void append(std::span<const uint32_t> tokens);

  int64_t tokens() const { return tokens_; }  // appended so far

  /// Returns the SHA-256 of the finished file, 64 hex digits. REQUIRES: called once.
  std::string finish();

 private:
  void flush();

  AtomicFile file_;
  int width_;
  int64_t tokens_ = 0;
  std::vector<std::byte> buffer_;  // encoded, not yet written
};

}  // namespace bamtrain

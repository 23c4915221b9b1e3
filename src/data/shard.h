#pragma once
// Token shards in llm.c's format, little-endian: a header of 256 int32 (magic, version, number of
// tokens, zeros), then the tokens.
//
//   width 2: magic 20240520, version 1, uint16 tokens
//   width 4: magic 20240801, version 7, uint32 tokens (vocabularies past 65,536)

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/resumable_file.h"

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

/// Result of one pass over all bytes of a shard's file.
struct ShardContents {
  std::string sha256;
  int64_t documents = 0;  // tokens equal to `document_start`
};

/// A shard open for reading. Opening reads only the header, so its cost does not depend on the
/// size. Thread-safe.
///
/// Reads copy with pread, then check the file's size and modification time: the tokens come from
/// the file that was opened, or an Error is thrown. A mapping would be unsafe: touching a page that
/// the file has lost raises SIGBUS, and the rest of a last page reads as zeros. Every shard keeps a
/// descriptor open; if the process runs out, the soft limit is raised as far as the hard limit
/// allows.
class Shard {
 public:
  /// Throws Error (ExitCode::data) if the file is missing, empty or truncated, has trailing bytes,
  /// a wrong magic or version, or a token count that its size contradicts. Throws Error
  /// (ExitCode::io) if the system refuses to open or read it.
  static Shard open(const std::string& path);

  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;
  ~Shard();

  const std::string& path() const { return path_; }
  int64_t tokens() const { return tokens_; }
  int width() const { return width_; }  // 2 or 4 bytes per token
  int64_t file_bytes() const { return ShardFormat::kHeaderBytes + tokens_ * width_; }
  /// The header as read from the file, ShardFormat::kHeaderBytes bytes.
  std::span<const std::byte> header() const { return std::as_bytes(std::span(header_)); }

  /// Reads tokens [begin, begin + count) into out[0, count). Throws Error (ExitCode::data) with
  /// file, position and id if an id is `vocab` or more, or with the file if its size or
  /// modification time changed since it was opened. Throws Error (ExitCode::io) if the disk fails.
  /// `out` is unspecified after an error. Allocates nothing.
  /// REQUIRES: 0 <= begin, 0 <= count, begin + count <= tokens(), 1 <= vocab <= 2^31.
  void read(int64_t begin, int64_t count, int32_t* out, int64_t vocab) const;

  /// Reads bytes [offset, offset + bytes) of the file, header included, into `out`. Errors: as
  /// read, for a changed file or a failing disk. Allocates nothing.
  /// REQUIRES: 0 <= offset, 0 <= bytes, offset + bytes <= file_bytes().
  void read_file(int64_t offset, int64_t bytes, void* out) const;

  /// Calls `f` with the position of each token `id` at or after `begin`, in order. Errors: as read,
  /// for a changed file or a failing disk. REQUIRES: 0 <= begin <= tokens().
  void find_all(int64_t begin, int64_t id, const std::function<void(int64_t position)>& f) const;

  /// Reads the whole file once. Errors: as read. REQUIRES: as read.
  ShardContents contents(int64_t vocab, std::optional<int64_t> document_start) const;

  /// Asks the system to start reading these tokens from disk; returns at once. REQUIRES: as read.
  void will_need(int64_t begin, int64_t count) const;

 private:
  using Header = std::array<int32_t, ShardFormat::kHeaderInts>;

  Shard() = default;
  void close();
  void read_bytes(int64_t offset, void* out, int64_t bytes) const;
  template <class Id>
  uint32_t read_ids(int64_t begin, int64_t count, int32_t* out) const;
  void require_unchanged() const;
  void require_inside(int64_t begin, int64_t count) const;

  std::string path_;
  int descriptor_ = -1;
  Header header_ = {};
  timespec modified_ = {};
  int64_t tokens_ = 0;
  int width_ = 0;
};

/// Writes one shard. Several processes may continue it in turn, if each is given the number of
/// tokens written so far. Before finish() the header has no valid magic; destroying the writer
/// keeps the file. Every member may throw Error (ExitCode::io) for a full disk or a path that
/// cannot be written; afterwards the writer may only be destroyed.
class ShardWriter {
 public:
  /// Appends after the first `tokens` tokens of the file `path` and cuts off any further ones. At 0
  /// the file need not exist, but its folder must. Throws Error (ExitCode::data) if the file has
  /// fewer tokens. REQUIRES: width 2 or 4.
  ShardWriter(const std::string& path, int width, int64_t tokens = 0);

  /// Throws Error (ExitCode::data) for an id that does not fit the width, and past kMaxTokens
  /// tokens.
  void append(std::span<const uint32_t> tokens);

  int64_t tokens() const { return tokens_; }  // appended so far

  /// Flushes appended tokens to disk; the folder entry is durable only after sync_folder.
  void sync();

  /// Finishes the file and returns its SHA-256, 64 hex digits. The file is on disk, as after sync.
  /// REQUIRES: called once.
  std::string finish();

 private:
  void flush();

  ResumableFile file_;
  int width_;
  int64_t tokens_ = 0;
  std::vector<std::byte> buffer_;  // encoded, not yet written
};

}  // namespace bamtrain

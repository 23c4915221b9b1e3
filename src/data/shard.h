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

/// What one pass over all bytes of a shard's file tells.
struct ShardContents {
  std::string sha256;
  int64_t documents = 0;  // tokens that are the id asked for
};

/// A shard that is open for reading. Opening reads the header only, so it costs the same at any
/// size. Any number of threads may read.
///
/// Reads are copies, not views of a mapping, and each is followed by a look at the file's size and
/// time: tokens come from the file that was opened, or there is an Error. A page of a mapping that
/// the file has lost would end the process (SIGBUS), and what is left of a last page reads as
/// zeros. Every shard keeps a descriptor: of a set that has more than the process may open, the
/// soft limit is raised as far as the hard one allows.
class Shard {
 public:
  /// Error (ExitCode::data) where the file is missing, empty, truncated, has trailing bytes, or
  /// another magic, version or token count than its size says; (ExitCode::io) where the system
  /// refuses to open or read it.
  static Shard open(const std::string& path);

  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;
  ~Shard();

  const std::string& path() const { return path_; }
  int64_t tokens() const { return tokens_; }
  int width() const { return width_; }  // 2 or 4 bytes per token
  int64_t file_bytes() const { return ShardFormat::kHeaderBytes + tokens_ * width_; }
  /// The header as it stood in the file, ShardFormat::kHeaderBytes bytes.
  std::span<const std::byte> header() const { return std::as_bytes(std::span(header_)); }

  /// Tokens [begin, begin + count) into out[0, count). Error (ExitCode::data) naming the file, the
  /// position and the id where an id is `vocab` or more, or naming the file where it is no longer
  /// as it was opened, in size or in time of modification; (ExitCode::io) where the disk fails.
  /// `out` is unspecified then. Takes no memory.
  /// REQUIRES: 0 <= begin, 0 <= count, begin + count <= tokens(), 1 <= vocab <= 2^31.
  void read(int64_t begin, int64_t count, int32_t* out, int64_t vocab) const;

  /// Bytes [offset, offset + bytes) of the file, its header included, into `out`. Errors: as read,
  /// for a file that changed or a disk that fails. Takes no memory.
  /// REQUIRES: 0 <= offset, 0 <= bytes, offset + bytes <= file_bytes().
  void read_file(int64_t offset, int64_t bytes, void* out) const;

  /// Calls `f` with the position of each token `id` at or after `begin`, in order. Errors: as read,
  /// for a file that changed or a disk that fails. REQUIRES: 0 <= begin <= tokens().
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

/// Writes one shard, over the lives of several processes where it is told how far they came. Before
/// finish() the file is no shard by its magic; it stays where the writer is destroyed. Every member
/// may throw Error (ExitCode::io) for a full disk or a path that cannot be written; the writer is
/// good for nothing but destruction afterwards.
class ShardWriter {
 public:
  /// Writes behind the first `tokens` tokens of the file `path`, of which any more are cut off; at
  /// 0 it need not be there, but its folder. Error (ExitCode::data) where it has fewer. REQUIRES:
  /// width 2 or 4.
  ShardWriter(const std::string& path, int width, int64_t tokens = 0);

  /// Error (ExitCode::data) for an id that the width cannot hold, and past kMaxTokens tokens.
  void append(std::span<const uint32_t> tokens);

  int64_t tokens() const { return tokens_; }  // appended so far

  /// What was appended is on the disk; the folder's entry only after sync_folder.
  void sync();

  /// Returns the SHA-256 of the finished file, 64 hex digits; it is on the disk, as after sync.
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

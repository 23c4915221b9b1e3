#include "data_tools/text_reader.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/faults.h"
#include "core/gzip.h"
#include "data_tools/binary_input.h"
#include "data_tools/interrupt.h"

namespace bamtrain {
namespace {

constexpr size_t kChunk = size_t{1} << 18;
constexpr uint64_t kMaxXzMemory = uint64_t{1} << 30;
constexpr int kMaxZstdWindowLog = 31;  // for files of `zstd --long=31`
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kXzMagic{
    "\xFD"
    "7zXZ\0",
    6};

Error damaged(const std::string& path, const std::string& kind, const std::string& found) {
  return Error::fault(ExitCode::data, path, "damaged " + kind + " data: " + found,
                      "fetch the file again");
}

class PlainBytes : public ByteSource {
 public:
  explicit PlainBytes(const std::string& path) : path_(path) {
    if (path == kStandardInput) {
      fd_ = STDIN_FILENO;
      return;
    }
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fail(errno);
    struct stat status = {};
    if (::fstat(fd_, &status) == 0 && S_ISDIR(status.st_mode)) {
      ::close(fd_);
      fail(EISDIR);
    }
  }
  ~PlainBytes() override {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }
  PlainBytes(const PlainBytes&) = delete;
  PlainBytes& operator=(const PlainBytes&) = delete;

  size_t read(char* out, size_t n) override {
    const size_t again = std::min(n, peeked_.size());
    std::copy_n(peeked_.begin(), again, out);
    peeked_.erase(0, again);
    return again > 0 ? again : read_new(out, n);
  }

  /// The first `n` bytes, fewer in a shorter file; read() still returns them.
  const std::string& peek(size_t n) {
    while (peeked_.size() < n) {
      char c = 0;
      if (read_new(&c, 1) == 0) break;
      peeked_ += c;
    }
    return peeked_;
  }

  int64_t taken() const override { return taken_; }
  const std::string& path() const { return path_; }

 private:
  size_t read_new(char* out, size_t n) {
    while (true) {
      wait_for_input(fd_);
      const ssize_t got = ::read(fd_, out, n);
      if (got >= 0) {
        taken_ += got;
        return static_cast<size_t>(got);
      }
      if (errno != EINTR) fail(errno);
    }
  }
  [[noreturn]] void fail(int reason) const {
    throw system_error(ExitCode::io, path_, "read", reason, "check the path");
  }

  std::string path_;
  int fd_ = -1;
  std::string peeked_;
  int64_t taken_ = 0;
};

/// Common base of the decoders: holds the current compressed chunk.
class Decoder : public ByteSource {
 public:
  explicit Decoder(std::unique_ptr<PlainBytes> from) : from_(std::move(from)), chunk_(kChunk) {}
  int64_t taken() const override { return from_->taken(); }

 protected:
  const std::string& path() const { return from_->path(); }
  /// The next chunk; empty at the end of the file.
  std::string_view next_chunk() {
    return {chunk_.data(), from_->read(chunk_.data(), chunk_.size())};
  }

 private:
  std::unique_ptr<PlainBytes> from_;
  std::vector<char> chunk_;
};

class ZstdBytes : public Decoder {
 public:
  explicit ZstdBytes(std::unique_ptr<PlainBytes> from)
      : Decoder(std::move(from)), context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    require(context_ != nullptr && !ZSTD_isError(ZSTD_DCtx_setParameter(
                                       context_.get(), ZSTD_d_windowLogMax, kMaxZstdWindowLog)),
            "a zstd decoder");
  }

  size_t read(char* out, size_t n) override {
    ZSTD_outBuffer target = {out, n, 0};
    while (target.pos == 0) {
      if (in_.pos == in_.size) {
        const std::string_view chunk = next_chunk();
        if (chunk.empty()) {
          if (inside_frame_) throw damaged(path(), "zstd", "truncated frame");
          return 0;
        }
        in_ = {chunk.data(), chunk.size(), 0};
      }
      const size_t hint = ZSTD_decompressStream(context_.get(), &target, &in_);
      if (ZSTD_isError(hint)) throw damaged(path(), "zstd", ZSTD_getErrorName(hint));
      inside_frame_ = hint != 0;  // stays true, with a byte held back, until all is flushed
    }
    return target.pos;
  }

 private:
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool inside_frame_ = false;
};

class XzBytes : public Decoder {
 public:
  explicit XzBytes(std::unique_ptr<PlainBytes> from) : Decoder(std::move(from)) {
    require(lzma_stream_decoder(&stream_, kMaxXzMemory, LZMA_CONCATENATED) == LZMA_OK,
            "an xz decoder");
  }
  ~XzBytes() override { lzma_end(&stream_); }
  XzBytes(const XzBytes&) = delete;
  XzBytes& operator=(const XzBytes&) = delete;

  size_t read(char* out, size_t n) override {
    stream_.next_out = reinterpret_cast<uint8_t*>(out);
    stream_.avail_out = n;
    while (stream_.avail_out == n && !ended_) {
      if (stream_.avail_in == 0) {
        const std::string_view chunk = next_chunk();
        stream_.next_in = reinterpret_cast<const uint8_t*>(chunk.data());
        stream_.avail_in = chunk.size();
        if (chunk.empty()) action_ = LZMA_FINISH;
      }
      const lzma_ret result = lzma_code(&stream_, action_);
      ended_ = result == LZMA_STREAM_END;
      if (result == LZMA_OK || ended_) continue;
      throw damaged(path(), "xz",
                    result == LZMA_BUF_ERROR        ? "truncated stream"
                    : result == LZMA_MEMLIMIT_ERROR ? "a dictionary of more than 1 GiB"
                                                    : "lzma error " + std::to_string(result));
    }
    return n - stream_.avail_out;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  lzma_action action_ = LZMA_RUN;
  bool ended_ = false;
};

class GzipBytes : public Decoder {
 public:
  explicit GzipBytes(std::unique_ptr<PlainBytes> from)
      : Decoder(std::move(from)), decoder_(path(), [this] { return next_chunk(); }) {}

  size_t read(char* out, size_t n) override { return decoder_.read(out, n); }

 private:
  GzipDecoder decoder_;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  auto plain = std::make_unique<PlainBytes>(path);
  const std::string& start = plain->peek(kBinaryStart);
  if (begins_zstd(path, start)) return std::make_unique<ZstdBytes>(std::move(plain));
  if (start.starts_with(kXzMagic)) return std::make_unique<XzBytes>(std::move(plain));
  if (GzipDecoder::begins(start)) return std::make_unique<GzipBytes>(std::move(plain));
  refuse_binary(path, start);
  for (const char* kind : {"zst", "xz", "gz"}) {
    if (path.ends_with(std::string(".") + kind)) throw damaged(path, kind, "wrong first bytes");
  }
  return plain;
}

std::optional<int64_t> file_bytes(const std::string& path) {
  struct stat status = {};
  if (path == kStandardInput || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  return status.st_size;
}

TextReader::TextReader(const std::string& path, int64_t max_bytes)
    : path_(path), max_bytes_(max_bytes), source_(open_bytes(path)) {}

void TextReader::too_long() const {
  throw Error::fault(ExitCode::data, path_ + ":" + std::to_string(line_ + 1),
                     "document longer than " + std::to_string(max_bytes_) + " bytes",
                     "raise --max-document-bytes, or choose another --document");
}

/// Drops returned lines from the buffer and appends a chunk; false at the end of the text.
bool TextReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t size = buffer_.size();
  buffer_.resize(size + kChunk);
  buffer_.resize(size + source_->read(buffer_.data() + size, kChunk));
  if (!started_) {
    while (buffer_.size() < kByteOrderMark.size()) {
      char c = 0;
      if (source_->read(&c, 1) == 0) break;
      buffer_ += c;
    }
    started_ = true;
    if (buffer_.starts_with(kByteOrderMark)) {
      buffer_.erase(0, kByteOrderMark.size());
      next_offset_ = kByteOrderMark.size();
      return !buffer_.empty() || fill();
    }
  }
  return buffer_.size() > size;
}

bool TextReader::next(std::string_view* line) {
  size_t searched = begin_;
  size_t newline = 0;
  bool more = true;
  while (true) {
    newline = buffer_.find('\n', searched);
    const size_t end = std::min(newline, buffer_.size());
    if (static_cast<int64_t>(end - begin_) > max_bytes_) too_long();
    if (newline != std::string::npos || !more) break;
    searched = buffer_.size() - begin_;
    more = fill();
  }
  had_newline_ = newline != std::string::npos;
  const size_t end = had_newline_ ? newline : buffer_.size();
  if (!had_newline_ && end == begin_) return false;
  *line = std::string_view(buffer_).substr(begin_, end - begin_);
  offset_ = next_offset_;
  ++line_;
  const size_t used = end - begin_ + (had_newline_ ? 1 : 0);
  begin_ += used;
  next_offset_ += static_cast<int64_t>(used);
  return true;
}

std::string TextReader::rest() {
  while (fill()) {
    if (static_cast<int64_t>(buffer_.size()) > max_bytes_) too_long();
  }
  offset_ = next_offset_;
  line_ = 1;
  return std::exchange(buffer_, std::string());
}

}  // namespace bamtrain

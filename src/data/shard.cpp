#include "data/shard.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/faults.h"
#include "core/sha256.h"

namespace bamtrain {
namespace {

static_assert(std::endian::native == std::endian::little,
              "shards are little-endian and read as they are");

constexpr size_t kBufferBytes = size_t{1} << 20;

// Bytes of ids that read() buffers on the stack.
constexpr int64_t kIdBytes = 8192;

[[noreturn]] void refuse(const std::string& path, const std::string& expected,
                         const std::string& found, const std::string& remedy) {
  throw Error(ExitCode::data, path, expected, found, remedy);
}

[[noreturn]] void refuse_io(const std::string& path, const char* action) {
  throw system_error(ExitCode::io, path, action, errno, "check permissions and the disk");
}

/// open(2); raises the soft limit on descriptors if the process has used it up.
int open_file(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would block instead of being refused.
  const auto open = [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); };
  const int descriptor = open();
  rlimit limit;
  if (descriptor >= 0 || errno != EMFILE) return descriptor;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return open();
  }
  throw system_error(ExitCode::io, path, "open one more shard", EMFILE,
                     "raise the hard limit (ulimit -Hn), or make larger shards");
}

/// Returns bytes per token; throws Error for an unknown magic or version.
int width_of(std::span<const int32_t> header, const std::string& path) {
  for (int width : {2, 4}) {
    const ShardFormat format = ShardFormat::of_width(width);
    if (header[0] != format.magic) continue;
    if (header[1] != format.version) {
      refuse(
          path + ": header[1]",
          "version " + std::to_string(format.version) + " of magic " + std::to_string(format.magic),
          "version " + std::to_string(header[1]),
          "make the shard again with bamdata, or read it with a newer bamtrain");
    }
    return width;
  }
  refuse(path + ": header[0]",
         "magic " + std::to_string(ShardFormat::of_width(2).magic) + " (uint16 tokens) or " +
             std::to_string(ShardFormat::of_width(4).magic) + " (uint32 tokens)",
         "magic " + std::to_string(header[0]),
         "give token shards in llm.c's format, as `bamdata tokenize` writes them");
}

/// Copies ids, widened to 32 bits, and returns the largest. Simple enough to be vectorised.
template <class Id>
uint32_t widen(const Id* in, int64_t count, int32_t* out) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t id = in[i];
    out[i] = static_cast<int32_t>(id);
    largest = std::max(largest, id);
  }
  return largest;
}

template <class Id>
void encode(std::span<const uint32_t> ids, std::byte* out) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const Id id = static_cast<Id>(ids[i]);
    std::memcpy(out + i * sizeof(Id), &id, sizeof(Id));
  }
}

}  // namespace

ShardFormat ShardFormat::of_width(int width) {
  require(width == 2 || width == 4, "tokens of 2 or 4 bytes");
  return width == 2 ? ShardFormat{2, 20240520, 1} : ShardFormat{4, 20240801, 7};
}

Shard Shard::open(const std::string& path) {
  Shard shard;
  shard.path_ = path;
  shard.descriptor_ = open_file(path);
  if (shard.descriptor_ < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    throw no_such_file(ExitCode::data, path, "check the path, or make it with bamdata");
  }
  if (shard.descriptor_ < 0) refuse_io(path, "open");
  struct stat status;
  if (::fstat(shard.descriptor_, &status) != 0) refuse_io(path, "open");
  if (!S_ISREG(status.st_mode)) {
    throw Error::fault(ExitCode::data, path, "not a regular file", "give a token shard");
  }
  shard.modified_ = status.st_mtim;

  const int64_t bytes = status.st_size;
  const std::string remedy = "copy or make the shard again";
  if (bytes == 0) throw Error::fault(ExitCode::data, path, "empty file", remedy);
  if (bytes < ShardFormat::kHeaderBytes) {
    refuse(path, "a header of " + std::to_string(ShardFormat::kHeaderBytes) + " bytes",
           "a truncated file of " + std::to_string(bytes) + " bytes", remedy);
  }
  shard.read_bytes(0, shard.header_.data(), ShardFormat::kHeaderBytes);
  shard.width_ = width_of(shard.header_, path);
  shard.tokens_ = shard.header_[2];
  if (shard.tokens_ < 0) {
    refuse(path + ": header[2]", "a number of tokens from 0 to 2^31 - 1",
           std::to_string(shard.tokens_), remedy);
  }
  const int64_t want = shard.file_bytes();
  if (bytes != want) {
    const int64_t off = bytes < want ? want - bytes : bytes - want;
    refuse(path,
           std::to_string(want) + " bytes (a header and " + std::to_string(shard.tokens_) +
               " tokens of " + std::to_string(shard.width_) + " bytes)",
           std::to_string(bytes) + " bytes: " +
               (bytes < want ? "truncated, " + std::to_string(off) + " bytes missing"
                             : std::to_string(off) + " trailing bytes"),
           remedy);
  }
  return shard;
}

Shard::Shard(Shard&& other) noexcept { *this = std::move(other); }

Shard& Shard::operator=(Shard&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  header_ = other.header_;
  modified_ = other.modified_;
  tokens_ = std::exchange(other.tokens_, 0);
  width_ = other.width_;
  return *this;
}

Shard::~Shard() { close(); }

void Shard::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

/// Throws Error (ExitCode::data) if the file ends too early. The bytes may come from a changed file
/// until require_unchanged is called.
void Shard::read_bytes(int64_t offset, void* out, int64_t bytes) const {
  auto* next = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const ssize_t n = ::pread(descriptor_, next, static_cast<size_t>(bytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_io(path_, "read");
    if (n == 0) {
      require_unchanged();
      refuse(path_, std::to_string(bytes) + " bytes at offset " + std::to_string(offset),
             "the end of the file", "copy or make the shard again");
    }
    next += n;
    offset += n;
    bytes -= n;
  }
}

/// Called after a read, not before it, so that a change in between is detected.
void Shard::require_unchanged() const {
  struct stat now;
  if (::fstat(descriptor_, &now) != 0) refuse_io(path_, "stat");
  const char* const remedy =
      "restore it and run the same command again; shards must not change while they are read";
  if (now.st_size != file_bytes()) {
    refuse(path_, std::to_string(file_bytes()) + " bytes, as when opened",
           std::to_string(now.st_size) + " bytes", remedy);
  }
  if (now.st_mtim.tv_sec != modified_.tv_sec || now.st_mtim.tv_nsec != modified_.tv_nsec) {
    throw Error::fault(ExitCode::data, path_, "modified since it was opened", remedy);
  }
}

void Shard::require_inside(int64_t begin, int64_t count) const {
  require(begin >= 0 && count >= 0 && begin <= tokens_ && count <= tokens_ - begin,
          "tokens inside the shard");
}

/// As read, but without the checks; returns the largest id.
template <class Id>
uint32_t Shard::read_ids(int64_t begin, int64_t count, int32_t* out) const {
  std::array<Id, kIdBytes / sizeof(Id)> piece;
  uint32_t largest = 0;
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min(count - done, static_cast<int64_t>(piece.size()));
    read_bytes(ShardFormat::kHeaderBytes + (begin + done) * width_, piece.data(), n * width_);
    largest = std::max(largest, widen(piece.data(), n, out + done));
    done += n;
  }
  return largest;
}

void Shard::read(int64_t begin, int64_t count, int32_t* out, int64_t vocab) const {
  require_inside(begin, count);
  require(vocab >= 1 && vocab <= int64_t{1} << 31, "a vocabulary whose ids fit an int32");
  if (count == 0) return;
  const uint32_t largest =
      width_ == 2 ? read_ids<uint16_t>(begin, count, out) : read_ids<uint32_t>(begin, count, out);
  require_unchanged();
  if (largest < vocab) return;
  const auto* bad = std::find_if(
      out, out + count, [vocab](int32_t id) { return static_cast<uint32_t>(id) >= vocab; });
  refuse(path_ + ": token " + std::to_string(begin + (bad - out)),
         "an id below the vocabulary of " + std::to_string(vocab),
         "id " + std::to_string(static_cast<uint32_t>(*bad)),
         "set model.vocab to the tokenizer's, or use shards of the model's tokenizer");
}

void Shard::read_file(int64_t offset, int64_t bytes, void* out) const {
  require(offset >= 0 && bytes >= 0 && offset <= file_bytes() && bytes <= file_bytes() - offset,
          "bytes inside the file");
  read_bytes(offset, out, bytes);
  require_unchanged();
}

void Shard::find_all(int64_t begin, int64_t id, const std::function<void(int64_t)>& f) const {
  require_inside(begin, 0);
  const auto most = static_cast<int64_t>(kBufferBytes / sizeof(int32_t));
  std::vector<int32_t> ids(static_cast<size_t>(std::min(most, tokens_ - begin)));
  while (begin < tokens_) {
    const int64_t n = std::min(most, tokens_ - begin);
    read(begin, n, ids.data(), int64_t{1} << 31);
    for (int64_t i = 0; i < n; ++i) {
      if (ids[static_cast<size_t>(i)] == id) f(begin + i);
    }
    begin += n;
  }
}

namespace {

struct IdCounts {
  uint32_t largest = 0;
  int64_t equal = 0;
};

template <class Id>
IdCounts count_ids(const std::byte* bytes, int64_t count, uint32_t id) {
  IdCounts counts;
  for (int64_t i = 0; i < count; ++i) {
    Id found;
    std::memcpy(&found, bytes + i * static_cast<int64_t>(sizeof(Id)), sizeof(Id));
    counts.largest = std::max<uint32_t>(counts.largest, found);
    counts.equal += found == id;
  }
  return counts;
}

}  // namespace

ShardContents Shard::contents(int64_t vocab, std::optional<int64_t> document_start) const {
  require(vocab >= 1 && vocab <= int64_t{1} << 31, "a vocabulary whose ids fit an int32");
  const auto start = static_cast<uint32_t>(document_start.value_or(0));
  ShardContents contents;
  Sha256 digest;
  std::vector<std::byte> piece(kBufferBytes);
  read_bytes(0, piece.data(), ShardFormat::kHeaderBytes);
  digest.update(piece.data(), static_cast<size_t>(ShardFormat::kHeaderBytes));
  const auto most = static_cast<int64_t>(kBufferBytes) / width_;
  for (int64_t at = 0; at < tokens_; at += most) {
    const int64_t n = std::min(most, tokens_ - at);
    read_bytes(ShardFormat::kHeaderBytes + at * width_, piece.data(), n * width_);
    digest.update(piece.data(), static_cast<size_t>(n * width_));
    const IdCounts counts = width_ == 2 ? count_ids<uint16_t>(piece.data(), n, start)
                                        : count_ids<uint32_t>(piece.data(), n, start);
    if (document_start) contents.documents += counts.equal;
    if (counts.largest >= vocab) {  // read throws with the position
      std::vector<int32_t> ids(static_cast<size_t>(n));
      read(at, n, ids.data(), vocab);
    }
  }
  require_unchanged();
  contents.sha256 = digest.hex();
  return contents;
}

void Shard::will_need(int64_t begin, int64_t count) const {
  require_inside(begin, count);
  // A failure costs time, never correctness: what was not read ahead is read on demand.
  ::posix_fadvise(descriptor_, ShardFormat::kHeaderBytes + begin * width_, count * width_,
                  POSIX_FADV_WILLNEED);
}

ShardWriter::ShardWriter(const std::string& path, int width, int64_t tokens)
    : file_(path, tokens == 0 ? 0 : ShardFormat::kHeaderBytes + tokens * width),
      width_(width),
      tokens_(tokens) {
  require(width == 2 || width == 4, "tokens of 2 or 4 bytes");
  // The header is zero until finish: a file left by a killed process has no valid magic either.
  if (tokens == 0) buffer_.resize(static_cast<size_t>(ShardFormat::kHeaderBytes));
}

void ShardWriter::append(std::span<const uint32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > ShardFormat::kMaxTokens - tokens_) {
    refuse(file_.path(), "at most 2^31 - 1 tokens in a shard",
           std::to_string(tokens_) + " + " + std::to_string(count), "use a smaller shard size");
  }
  if (width_ == 2) {
    const auto bad =
        std::find_if(tokens.begin(), tokens.end(), [](uint32_t id) { return id > 0xFFFF; });
    if (bad != tokens.end()) {
      refuse(file_.path() + ": token " + std::to_string(tokens_ + (bad - tokens.begin())),
             "an id that fits 2 bytes", "id " + std::to_string(*bad),
             "write tokens of 4 bytes for this vocabulary");
    }
  }
  for (size_t done = 0; done < tokens.size();) {
    if (buffer_.size() >= kBufferBytes) flush();
    const auto width = static_cast<size_t>(width_);
    const size_t n = std::min(tokens.size() - done, (kBufferBytes - buffer_.size()) / width);
    const size_t end = buffer_.size();
    buffer_.resize(end + n * width);
    if (width_ == 2) {
      encode<uint16_t>(tokens.subspan(done, n), buffer_.data() + end);
    } else {
      encode<uint32_t>(tokens.subspan(done, n), buffer_.data() + end);
    }
    done += n;
  }
  tokens_ += count;
}

void ShardWriter::flush() {
  file_.append(buffer_.data(), static_cast<int64_t>(buffer_.size()));
  buffer_.clear();
}

void ShardWriter::sync() {
  flush();
  file_.sync();
}

std::string ShardWriter::finish() {
  flush();
  const ShardFormat format = ShardFormat::of_width(width_);
  const std::array<int32_t, 3> header = {format.magic, format.version,
                                         static_cast<int32_t>(tokens_)};
  file_.rewrite_start(header.data(), sizeof(header));
  file_.sync();
  // The count precedes the tokens but is known only after them: hashing takes a second pass.
  return file_.sha256();
}

}  // namespace bamtrain

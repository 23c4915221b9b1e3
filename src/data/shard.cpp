#include "data/shard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/checked.h"
#include "core/error.h"

namespace bamtrain {
namespace {

static_assert(std::endian::native == std::endian::little,
              "shards are little-endian and mapped as they are");

constexpr size_t kBufferBytes = size_t{1} << 20;

using Header = std::array<int32_t, ShardFormat::kHeaderInts>;

struct FileDescriptor {
  int fd = -1;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void refuse(const std::string& path, const std::string& expected,
                         const std::string& found, const std::string& remedy) {
  throw Error(ExitCode::data, path, expected, found, remedy);
}

[[noreturn]] void refuse_io(const std::string& path, const char* expected) {
  throw Error(ExitCode::io, path, expected, std::strerror(errno), "check permissions and the disk");
}

/// The first kHeaderBytes of the file. REQUIRES: that many are there.
Header read_header(int fd, const std::string& path) {
  Header header;
  char* p = reinterpret_cast<char*>(header.data());
  for (size_t done = 0; done < sizeof(header);) {
    const ssize_t n = ::pread(fd, p + done, sizeof(header) - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_io(path, "a shard that can be read");
    if (n == 0) refuse(path, "a shard", "a file that shrank while it was opened", "try again");
    done += static_cast<size_t>(n);
  }
  return header;
}

/// Bytes per token, or an Error for a magic or version of no known format.
int width_of(const Header& header, const std::string& path) {
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

/// Copies ids, widened to 32 bits, and returns the largest. Plain enough to be vectorised.
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
  // Without O_NONBLOCK a named pipe would be waited for instead of refused.
  FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    refuse(path, "a token shard", "no such file", "check the path, or make it with bamdata");
  }
  if (file.fd < 0) refuse_io(path, "a shard that can be opened");
  struct stat status;
  if (::fstat(file.fd, &status) != 0) refuse_io(path, "a shard that can be opened");
  if (!S_ISREG(status.st_mode)) {
    refuse(path, "a token shard", "something that is not a regular file", "give a file");
  }

  const int64_t bytes = status.st_size;
  const std::string remedy = "copy or make the shard again";
  if (bytes == 0) refuse(path, "a token shard", "an empty file", remedy);
  if (bytes < ShardFormat::kHeaderBytes) {
    refuse(path, "a header of " + std::to_string(ShardFormat::kHeaderBytes) + " bytes",
           "a truncated file of " + std::to_string(bytes) + " bytes", remedy);
  }
  const Header header = read_header(file.fd, path);
  const int width = width_of(header, path);
  const int64_t tokens = header[2];
  if (tokens < 0) {
    refuse(path + ": header[2]", "a number of tokens from 0 to 2^31 - 1", std::to_string(tokens),
           remedy);
  }
  const int64_t want =
      checked_add(ShardFormat::kHeaderBytes, checked_mul(tokens, width, path), path);
  if (bytes != want) {
    const int64_t off = bytes < want ? want - bytes : bytes - want;
    refuse(path,
           std::to_string(want) + " bytes (a header and " + std::to_string(tokens) + " tokens of " +
               std::to_string(width) + " bytes)",
           std::to_string(bytes) + " bytes: " +
               (bytes < want ? "truncated, " + std::to_string(off) + " bytes missing"
                             : std::to_string(off) + " trailing bytes"),
           remedy);
  }

  void* map = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED, file.fd, 0);
  if (map == MAP_FAILED) refuse_io(path, "a shard that can be mapped into memory");
  Shard shard;
  shard.path_ = path;
  shard.map_ = static_cast<const std::byte*>(map);
  shard.file_bytes_ = bytes;
  shard.tokens_ = tokens;
  shard.width_ = width;
  return shard;
}

Shard::Shard(Shard&& other) noexcept { *this = std::move(other); }

Shard& Shard::operator=(Shard&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  path_ = std::move(other.path_);
  map_ = std::exchange(other.map_, nullptr);
  file_bytes_ = std::exchange(other.file_bytes_, 0);
  tokens_ = std::exchange(other.tokens_, 0);
  width_ = std::exchange(other.width_, 0);
  return *this;
}

Shard::~Shard() { unmap(); }

void Shard::unmap() {
  if (map_) ::munmap(const_cast<std::byte*>(map_), static_cast<size_t>(file_bytes_));
  map_ = nullptr;
}

std::span<const std::byte> Shard::header() const {
  return {map_, static_cast<size_t>(ShardFormat::kHeaderBytes)};
}

void Shard::read(int64_t begin, int64_t count, int32_t* out, int64_t vocab) const {
  require(begin >= 0 && count >= 0 && begin <= tokens_ && count <= tokens_ - begin,
          "tokens inside the shard");
  require(vocab >= 1 && vocab <= int64_t{1} << 31, "a vocabulary whose ids fit an int32");
  const std::byte* in = map_ + ShardFormat::kHeaderBytes + begin * width_;
  const uint32_t largest = width_ == 2 ? widen(reinterpret_cast<const uint16_t*>(in), count, out)
                                       : widen(reinterpret_cast<const uint32_t*>(in), count, out);
  if (count == 0 || largest < vocab) return;
  const auto* bad = std::find_if(
      out, out + count, [vocab](int32_t id) { return static_cast<uint32_t>(id) >= vocab; });
  refuse(path_ + ": token " + std::to_string(begin + (bad - out)),
         "an id below the vocabulary of " + std::to_string(vocab),
         "id " + std::to_string(static_cast<uint32_t>(*bad)),
         "set model.vocab to the tokenizer's, or use shards of this tokenizer");
}

int64_t Shard::find(int64_t begin, int64_t id) const {
  require(begin >= 0 && begin <= tokens_, "a position inside the shard");
  const auto search = [&](auto* ids) -> int64_t {
    return std::find_if(ids + begin, ids + tokens_, [id](int64_t x) { return x == id; }) - ids;
  };
  const std::byte* first = map_ + ShardFormat::kHeaderBytes;
  return width_ == 2 ? search(reinterpret_cast<const uint16_t*>(first))
                     : search(reinterpret_cast<const uint32_t*>(first));
}

void Shard::will_need(int64_t begin, int64_t count) const {
  require(begin >= 0 && count >= 0 && begin <= tokens_ && count <= tokens_ - begin,
          "tokens inside the shard");
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(map_ + ShardFormat::kHeaderBytes + begin * width_);
  const uintptr_t start = first / page * page;
  // Its failure costs time, never correctness: the pages are then read when they are touched.
  ::madvise(reinterpret_cast<void*>(start), first + static_cast<uintptr_t>(count * width_) - start,
            MADV_WILLNEED);
}

ShardWriter::ShardWriter(const std::string& path, int width) : file_(path), width_(width) {
  require(width == 2 || width == 4, "tokens of 2 or 4 bytes");
  // Zeros until finish: what a killed process leaves behind is no shard by its magic either.
  buffer_.resize(static_cast<size_t>(ShardFormat::kHeaderBytes));
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
  file_.write(buffer_.data(), static_cast<int64_t>(buffer_.size()));
  buffer_.clear();
}

std::string ShardWriter::finish() {
  flush();
  const ShardFormat format = ShardFormat::of_width(width_);
  const std::array<int32_t, 3> header = {format.magic, format.version,
                                         static_cast<int32_t>(tokens_)};
  file_.rewrite_start(header.data(), sizeof(header));
  // The count stands before the tokens and is known after them: the hash takes a second pass.
  std::string hash = file_.sha256();
  file_.commit();
  return hash;
}

}  // namespace bamtrain

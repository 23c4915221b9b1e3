#include "core/text_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/faults.h"
#include "core/gzip.h"

namespace bamtrain {
namespace {

constexpr int64_t kMostText = int64_t{1} << 32;
constexpr int64_t kPieceBytes = int64_t{1} << 18;

/// Creates an in-memory file.
class TextInMemory {
 public:
  explicit TextInMemory(const std::string& of)
      : of_(of), descriptor_(::memfd_create("text", MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail();
  }
  ~TextInMemory() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  TextInMemory(const TextInMemory&) = delete;
  TextInMemory& operator=(const TextInMemory&) = delete;

  void append(const char* data, size_t n) {
    while (n > 0) {
      const ssize_t written = ::write(descriptor_, data, n);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      data += written;
      n -= static_cast<size_t>(written);
    }
  }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  [[noreturn]] void fail() const {
    throw system_error(ExitCode::device, of_, "decompress into memory", errno,
                       "decompress the file, and name that");
  }

  const std::string& of_;
  int descriptor_;
};

}  // namespace

InputFile open_text_file(const std::string& path, const std::string& remedy) {
  InputFile file(path, ExitCode::io, remedy);
  char start[2] = {};
  if (file.bytes() < static_cast<int64_t>(sizeof start)) return file;
  file.read(0, start, sizeof start);
  if (!GzipDecoder::begins({start, sizeof start})) return file;
  std::vector<char> piece(static_cast<size_t>(kPieceBytes)), text(piece.size());
  int64_t at = 0;
  GzipDecoder decoder(path, [&] {
    const int64_t n = std::min(kPieceBytes, file.bytes() - at);
    file.read(at, piece.data(), n);
    at += n;
    return std::string_view(piece.data(), static_cast<size_t>(n));
  });
  TextInMemory memory(path);
  int64_t bytes = 0;
  while (const size_t n = decoder.read(text.data(), text.size())) {
    bytes += static_cast<int64_t>(n);
    if (bytes > kMostText) {
      throw Error::fault(ExitCode::data, path,
                         "more than " + std::to_string(kMostText) + " bytes of text",
                         "decompress the file, and name that");
    }
    memory.append(text.data(), n);
  }
  return InputFile(memory.release(), path, ExitCode::io, remedy);
}

}  // namespace bamtrain

#include "core/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/faults.h"
#include "core/sha256.h"

namespace bamtrain {
namespace {

constexpr int64_t kReadBytes = int64_t{1} << 20;

/// Whether a retry would fail the same way: no such file, or not a file.
bool says_of_the_file(int error) {
  return error == ENOENT || error == ENOTDIR || error == EISDIR || error == ELOOP ||
         error == ENAMETOOLONG || error == ENXIO;
}

}  // namespace

InputFile::InputFile(const std::string& path, ExitCode code, const std::string& remedy,
                     Refusals refusals)
    : path_(path), code_(code), remedy_(remedy), refusals_(refusals) {
  // Without O_NONBLOCK, opening a named pipe would block instead of being refused.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) refuse("read", errno);
  take_size();
}

InputFile::InputFile(int descriptor, const std::string& path, ExitCode code,
                     const std::string& remedy)
    : path_(path),
      code_(code),
      remedy_(remedy),
      refusals_(Refusals::of_the_file),
      descriptor_(descriptor) {
  take_size();
}

void InputFile::take_size() {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    refuse("a regular file", S_ISDIR(info.st_mode) ? "a folder" : "a pipe, a device or a socket");
  }
  bytes_ = info.st_size;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      code_(other.code_),
      remedy_(std::move(other.remedy_)),
      refusals_(other.refusals_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, 0)) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::refuse(const std::string& expected, const std::string& found) const {
  throw Error(code_, path_, expected, found, remedy_);
}

void InputFile::refuse(const std::string& action, int error) const {
  if (refusals_ == Refusals::passing && !says_of_the_file(error)) {
    throw system_error(ExitCode::io, path_, action, error, "try again once the system can read it");
  }
  throw system_error(code_, path_, action, error, remedy_);
}

void InputFile::read(int64_t offset, void* out, int64_t bytes) const {
  require(offset >= 0 && bytes >= 0, "an offset and a size that are not negative");
  char* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n =
        ::pread(descriptor_, next, static_cast<size_t>(std::min(bytes, kReadBytes * 1024)),
                static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const std::string part = std::to_string(bytes) + " bytes at offset " + std::to_string(offset);
      if (n < 0) refuse("read " + part, errno);
      refuse(part, "the end of the file");
    }
    next += n;
    offset += n;
    bytes -= n;
  }
}

std::string InputFile::text(int64_t limit) const {
  if (bytes_ > limit) {
    refuse("at most " + std::to_string(limit) + " bytes", std::to_string(bytes_));
  }
  std::string content(static_cast<size_t>(bytes_), '\0');
  read(0, content.data(), bytes_);
  return content;
}

void InputFile::for_pieces(const std::function<void(int64_t, const char*, int64_t)>& f) const {
  std::vector<char> piece(static_cast<size_t>(std::min(bytes_, kReadBytes)));
  for (int64_t offset = 0; offset < bytes_;) {
    const int64_t n = std::min(bytes_ - offset, kReadBytes);
    read(offset, piece.data(), n);
    f(offset, piece.data(), n);
    offset += n;
  }
}

std::string InputFile::sha256() const {
  Sha256 digest;
  for_pieces(
      [&](int64_t, const char* piece, int64_t n) { digest.update(piece, static_cast<size_t>(n)); });
  return digest.hex();
}

}  // namespace bamtrain

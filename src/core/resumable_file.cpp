#include "core/resumable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"

namespace bamtrain {

void ResumableFile::fail(const std::string& action, int error) const {
  throw system_error(ExitCode::io, path_, action, error,
                     error == ENOSPC || error == EDQUOT
                         ? "free space on this disk, and run the same command again"
                         : "check the folder's permissions and its disk");
}

ResumableFile::ResumableFile(const std::string& path, int64_t keep) : path_(path), bytes_(keep) {
  if (const int fault = file_fault(FileOp::create, path_)) fail("write", fault);
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("write", errno);
  struct stat info = {};
  const int reason = ::fstat(descriptor_, &info) != 0 ? errno : 0;
  const bool enough = info.st_size >= keep;
  if (reason == 0 && enough && ::ftruncate(descriptor_, keep) == 0) return;
  const int error = reason != 0 ? reason : errno;
  ::close(std::exchange(descriptor_, -1));
  if (reason != 0 || enough) fail("truncate", error);
  throw Error(ExitCode::data, path_, "at least " + std::to_string(keep) + " bytes",
              std::to_string(info.st_size), "remove the folder, and start over");
}

ResumableFile::~ResumableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ResumableFile::write_at(int64_t offset, const void* data, int64_t bytes) {
  const char* next = static_cast<const char*>(data);
  constexpr int64_t kMost = int64_t{1} << 30;  // below the limit of one pwrite(2)
  while (bytes > 0) {
    const std::string action = "write " + std::to_string(bytes) + " bytes";
    if (const int fault = file_fault(FileOp::write, path_)) fail(action, fault);
    const ssize_t n =
        ::pwrite(descriptor_, next, static_cast<size_t>(std::min(bytes, kMost)), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(action, errno);
    next += n;
    offset += n;
    bytes -= n;
  }
}

void ResumableFile::append(const void* data, int64_t bytes) {
  write_at(bytes_, data, bytes);
  bytes_ += bytes;
}

void ResumableFile::rewrite_start(const void* data, int64_t bytes) {
  require(bytes <= bytes_, "a file of so many bytes");
  write_at(0, data, bytes);
}

void ResumableFile::read(int64_t offset, void* out, int64_t bytes) const {
  constexpr const char* kReadBack = "read back";
  require(offset >= 0 && bytes >= 0 && offset + bytes <= bytes_, "bytes that were written");
  char* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n = ::pread(descriptor_, next, static_cast<size_t>(bytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(kReadBack, errno);
    if (n == 0) fail(kReadBack, EIO);  // something has truncated the file
    next += n;
    offset += n;
    bytes -= n;
  }
}

std::string ResumableFile::sha256() const {
  constexpr int64_t kPiece = int64_t{1} << 20;
  Sha256 digest;
  std::vector<char> piece(static_cast<size_t>(std::min(bytes_, kPiece)));
  for (int64_t offset = 0; offset < bytes_; offset += kPiece) {
    const int64_t n = std::min(kPiece, bytes_ - offset);
    read(offset, piece.data(), n);
    digest.update(piece.data(), static_cast<size_t>(n));
  }
  return digest.hex();
}

void ResumableFile::sync() {
  if (const int fault = file_fault(FileOp::sync, path_)) fail("sync", fault);
  if (::fsync(descriptor_) != 0) fail("sync", errno);
}

}  // namespace bamtrain

#pragma once
// A file that appears under its name complete and on disk, or not at all.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"

namespace bamtrain {

/// Bytes go to `path`.tmp in the same folder; commit() moves it to `path`. The destructor removes
/// what was not committed, and a leftover of a killed process is overwritten by the next one.
/// Every failure of the system is an Error (ExitCode::io) naming `path`. One writer per path.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("a path that can be written", "check that its folder exists and is writable");
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!committed_) ::unlink(temporary_.c_str());
  }

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }

  /// Appends.
  void write(const void* data, size_t bytes) {
    const char* p = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(fd_, p, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("room to write to", "free some space");
      p += n;
      bytes -= static_cast<size_t>(n);
    }
  }

  /// Replaces bytes at the start; REQUIRES: so many were written before.
  void rewrite_start(const void* data, size_t bytes) {
    if (::lseek(fd_, 0, SEEK_SET) != 0) fail("a regular file", "write to another place");
    write(data, bytes);
  }

  /// Puts the bytes on disk and closes: temporary() can be read, and nothing more written.
  void close() {
    if (::fsync(fd_) != 0) fail("bytes to reach the disk", "free some space, check the disk");
    if (::close(std::exchange(fd_, -1)) != 0) {
      fail("bytes to reach the disk", "free some space, check the disk");
    }
  }

  /// Gives the file its name and puts that on disk too. REQUIRES: close() before.
  void commit() {
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      fail("a name that a file can have", "check that no folder has this name");
    }
    committed_ = true;
    const size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    errno = error;
    if (!synced) fail("its folder's entry to reach the disk", "check the disk");
  }

 private:
  [[noreturn]] void fail(const char* expected, const char* remedy) const {
    throw Error(ExitCode::io, path_, expected, std::strerror(errno), remedy);
  }

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

}  // namespace bamtrain

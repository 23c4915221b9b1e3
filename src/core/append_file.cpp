#include "core/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/durable_file.h"
#include "core/error.h"

namespace bamtrain {

namespace {

[[noreturn]] void fail(const std::string& path, const char* expected, int reason) {
  throw Error(ExitCode::io, path, expected, std::strerror(reason),
              "check free space and permissions of the run's folder");
}

}  // namespace

AppendFile::AppendFile(const std::string& path, int64_t keep)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail(path_, "a file that can be written", errno);
  if (::ftruncate(descriptor_, keep) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    fail(path_, "a file that can be cut back to the checkpoint", reason);
  }
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path_, "room for what is appended", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void AppendFile::sync() {
  if (::fsync(descriptor_) != 0) fail(path_, "a file whose content reaches the disk", errno);
  sync_folder(parent_folder(path_));
}

}  // namespace bamtrain

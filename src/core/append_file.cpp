#include "core/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"

namespace bamtrain {

namespace {

[[noreturn]] void fail(const std::string& path, const char* expected, int reason) {
  throw Error(ExitCode::io, path, expected, std::strerror(reason),
              "check free space and permissions of the run's folder");
}

int open_to_append(const std::string& path) {
  constexpr const char* kWritable = "a file that can be written";
  if (const int fault = file_fault(FileOp::create, path)) fail(path, kWritable, fault);
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path, kWritable, errno);
  return descriptor;
}

}  // namespace

AppendFile::AppendFile(const std::string& path, int64_t keep)
    : path_(path), descriptor_(open_to_append(path)) {
  if (::ftruncate(descriptor_, keep) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    fail(path_, "a file that can be cut back to the checkpoint", reason);
  }
}

AppendFile::~AppendFile() { ::close(descriptor_); }

bool AppendFile::is_in_its_place() const {
  struct stat own = {}, there = {};
  return ::fstat(descriptor_, &own) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

bool AppendFile::take_lost() { return std::exchange(lost_, false); }

void AppendFile::write(std::string_view bytes) {
  constexpr const char* kRoom = "room for what is appended";
  if (!is_in_its_place()) {
    ::close(std::exchange(descriptor_, open_to_append(path_)));
    lost_ = true;
  }
  while (!bytes.empty()) {
    if (const int fault = file_fault(FileOp::write, path_)) fail(path_, kRoom, fault);
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path_, kRoom, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void AppendFile::sync() {
  constexpr const char* kSynced = "a file whose content reaches the disk";
  if (const int fault = file_fault(FileOp::sync, path_)) fail(path_, kSynced, fault);
  if (::fsync(descriptor_) != 0) fail(path_, kSynced, errno);
  sync_folder(parent_folder(path_));
}

}  // namespace bamtrain

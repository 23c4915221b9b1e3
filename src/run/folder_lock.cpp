#include "run/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace bamtrain {

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw Error(ExitCode::io, path, "a file that can be written", std::strerror(errno),
                "change out_dir or its permissions");
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    char holder[32] = {};
    const ssize_t n = ::read(descriptor_, holder, sizeof holder - 1);
    ::close(descriptor_);
    descriptor_ = -1;
    // Any other answer comes from a file system that has no locks.
    if (reason != EWOULDBLOCK) return;
    throw Error(ExitCode::io, folder, "a folder that no other run is using",
                n > 0 ? "the run of process " + std::string(holder, static_cast<size_t>(n))
                      : std::string("another run"),
                "wait for it to end, or choose another out_dir");
  }
  const std::string own = std::to_string(::getpid());
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw Error(ExitCode::io, folder + "/.lock", "a regular file, which the run makes itself",
                "something else", "remove it, or choose another out_dir");
  }
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::write(descriptor_, own.data(), own.size()) != static_cast<ssize_t>(own.size())) {
    const int reason = errno;
    ::close(descriptor_);
    throw Error(ExitCode::io, path, "room for the process id", std::strerror(reason),
                "free some space");
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace bamtrain

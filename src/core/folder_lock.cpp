#include "core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"

namespace bamtrain {

namespace {

int open_lock(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor >= 0) return descriptor;
  throw Error(ExitCode::io, path, "a file that can be written", std::strerror(errno),
              "choose another folder, or change its permissions");
}

/// Takes the lock of an open file; false on a file system that has no locks.
bool take_lock(int descriptor, const std::string& folder) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) return false;
  char holder[32] = {};
  const ssize_t n = ::read(descriptor, holder, sizeof holder - 1);
  ::close(descriptor);
  throw Error(ExitCode::io, folder, "a folder that no other run is using",
              n > 0 ? "the run of process " + std::string(holder, static_cast<size_t>(n))
                    : std::string("another run"),
              "wait for it to end, or choose another folder");
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : path_(folder + "/" + kName) {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    descriptor_ = open_lock(path_);
    const bool locks = take_lock(descriptor_, folder);
    if (locks && is_file_at(path_, descriptor_)) break;
    // Removed before it was locked it keeps nobody out: whoever comes makes another.
    ::close(std::exchange(descriptor_, -1));
    if (!locks) return;
  }
  if (descriptor_ < 0) refuse();
  const std::string own = std::to_string(::getpid());
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw Error(ExitCode::io, folder + "/.lock", "a regular file, which the run makes itself",
                "something else", "remove it, or choose another folder");
  }
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::write(descriptor_, own.data(), own.size()) != static_cast<ssize_t>(own.size())) {
    const int reason = errno;
    ::close(descriptor_);
    throw Error(ExitCode::io, path_, "room for the process id", std::strerror(reason),
                "free some space");
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FolderLock::require_held() const {
  if (descriptor_ >= 0 && !is_file_at(path_, descriptor_)) refuse();
}

void FolderLock::refuse() const {
  struct stat info = {};
  const int reason = ::stat(path_.c_str(), &info) == 0 ? 0 : errno;
  throw Error(ExitCode::io, path_, "the file that keeps other runs out of this folder",
              reason == 0 ? "another file" : std::strerror(reason),
              "see that no other run is in the folder, and run the same command again");
}

}  // namespace bamtrain

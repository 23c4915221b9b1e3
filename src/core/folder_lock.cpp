#include "core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"

namespace bamtrain {

namespace {

int open_lock(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor >= 0) return descriptor;
  throw system_error(ExitCode::io, path, "write", errno,
                     "choose another folder, or change its permissions");
}

enum class Taken { yes, held, no_locks };

/// Locks an open file; returns no_locks on a file system without locks.
Taken take_lock(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return Taken::yes;
  return errno == EWOULDBLOCK ? Taken::held : Taken::no_locks;
}

/// The lock file that the parent left open for this process; -1 if there is none.
int inherited(const std::string& path) {
  const char* const text = std::getenv(FolderLock::kInherited);
  if (text == nullptr) return -1;
  const int descriptor = std::atoi(text);
  if (descriptor <= STDERR_FILENO || !is_file_at(path, descriptor)) return -1;
  ::unsetenv(FolderLock::kInherited);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
  std::string holder;
  if (take(folder, &holder)) return;
  throw Error::fault(
      ExitCode::io, folder,
      "in use by " + (holder.empty() ? "another run" : "the run of process " + holder),
      "wait for it to end, or choose another folder");
}

std::unique_ptr<FolderLock> FolderLock::unless_held(const std::string& folder) {
  std::unique_ptr<FolderLock> lock(new FolderLock());
  std::string unused;
  if (!lock->take(folder, &unused)) lock = nullptr;
  return lock;
}

bool FolderLock::take(const std::string& folder, std::string* holder) {
  path_ = folder + "/" + kName;
  descriptor_ = inherited(path_);
  constexpr int kTries = 10;
  for (int i = 0; descriptor_ < 0 && i < kTries; ++i) {
    descriptor_ = open_lock(path_);
    const Taken taken = take_lock(descriptor_);
    if (taken == Taken::held) {
      char text[32] = {};
      const ssize_t n = ::read(descriptor_, text, sizeof text - 1);
      if (n > 0) holder->assign(text, static_cast<size_t>(n));
      ::close(std::exchange(descriptor_, -1));
      return false;
    }
    if (taken == Taken::yes && is_file_at(path_, descriptor_)) break;
    // If it was removed before it was locked it keeps nobody out: the next process creates another.
    ::close(std::exchange(descriptor_, -1));
    if (taken == Taken::no_locks) return true;
  }
  if (descriptor_ < 0) refuse();
  const std::string own = std::to_string(::getpid());
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    throw Error::fault(ExitCode::io, folder + "/.lock",
                       "not a regular file, so the run cannot lock its folder",
                       "remove it, or choose another folder");
  }
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, own.data(), own.size(), 0) != static_cast<ssize_t>(own.size())) {
    const int reason = errno;
    ::close(std::exchange(descriptor_, -1));
    throw system_error(ExitCode::io, path_, "write the process id", reason, "free some space");
  }
  return true;
}

void FolderLock::leave_to_program() const {
  if (descriptor_ < 0) return;
  ::fcntl(descriptor_, F_SETFD, 0);
  ::setenv(kInherited, std::to_string(descriptor_).c_str(), 1);
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
  throw Error::fault(ExitCode::io, path_,
                     std::string("lost the lock of this folder: ") +
                         (reason == 0 ? "the file was replaced" : std::strerror(reason)),
                     "see that no other run uses the folder, and run the same command again");
}

}  // namespace bamtrain

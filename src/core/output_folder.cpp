#include "core/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/sha256.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLetters = 4;  // chosen by make_new_folder

/// Locks a folder; returns -1 if another process holds the lock or there are no locks.
int lock_folder(const std::string& path, int how) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return -1;
  int result = 0;
  while ((result = ::flock(descriptor, LOCK_EX | how)) != 0 && errno == EINTR) {
  }
  if (result == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

/// Whether `path` is still the open folder.
bool leads_to(const std::string& path, int descriptor) {
  struct stat named;
  struct stat open;
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(descriptor, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

std::string OutputFolder::temporary_prefix(const std::string& final_path) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return final_path + ".tmp-" + sha256_hex(host).substr(0, 8) + "-";
}

OutputFolder::OutputFolder(const std::string& final_path, MayReplace may_replace)
    : place_(final_path, std::move(may_replace)) {
  remove_leftovers();
  make_temporary();
}

/// Retries, because another process may take the folder for a leftover before it is locked.
void OutputFolder::make_temporary() {
  do {
    if (lock_ >= 0) ::close(lock_);
    temporary_ = make_new_folder(temporary_prefix(place_.path()));
    lock_ = lock_folder(temporary_, 0);
  } while (!(lock_ >= 0 ? leads_to(temporary_, lock_) : fs::exists(temporary_)));
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void OutputFolder::remove_leftovers() {
  const std::string prefix = fs::path(temporary_prefix(place_.path())).filename().string();
  std::error_code ignored;  // a folder that cannot be listed may still be writable
  for (fs::directory_iterator it(parent_folder(place_.path()), ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string other = it->path().filename().string();
    if (other.size() != prefix.size() + kLetters || !other.starts_with(prefix)) continue;
    const std::string path = it->path().string();
    const int lock = lock_folder(path, LOCK_NB);
    if (lock < 0) continue;
    try {
      remove_tree(path);
      removed_.push_back(path);
    } catch (const Error&) {
      // Perhaps another user's; it does not matter here.
    }
    ::close(lock);
  }
  std::sort(removed_.begin(), removed_.end());
}

std::string OutputFolder::subfolder(const std::string& name) const {
  const std::string path = temporary_ + "/" + name;
  make_folder(path);
  return path;
}

void OutputFolder::commit() {
  temporary_ = place_.take(temporary_);
  committed_ = true;
  if (temporary_.empty()) return;
  try {
    remove_tree(temporary_);
  } catch (const Error&) {
    // The new folder is in place; the next OutputFolder removes this one.
  }
}

}  // namespace bamtrain

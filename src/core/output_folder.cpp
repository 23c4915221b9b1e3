#include "core/output_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".tmp-XXXXXX";  // as mkdtemp(3) takes it

Error failed(const std::string& path, const std::string& expected, const std::string& found) {
  return Error(ExitCode::io, path, expected, found, "check permissions and free space");
}

/// A new folder beside `path`, named after it.
std::string folder_beside(const std::string& path) {
  std::string name = path + std::string(kSuffix);
  if (!::mkdtemp(name.data())) {
    throw failed(path, "a folder that can be made", std::strerror(errno));
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(name.c_str(), 0777 & ~mask);
  return name;
}

/// Takes the lock of a folder; -1 where another process holds it or there are no locks.
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

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

void put_mark(const std::string& folder) {
  const std::string mark = folder + "/" + OutputFolder::kMark;
  DurableFile file(mark);
  const std::string text = host_name() + "\n";
  file.write(text.data(), static_cast<int64_t>(text.size()));
  file.finish();
}

/// Whether `folder` holds the mark of a process on this machine.
bool has_own_mark(const std::string& folder) {
  try {
    const InputFile mark(folder + "/" + OutputFolder::kMark, ExitCode::io, "");
    return mark.text(1024) == host_name() + "\n";
  } catch (const Error&) {
    return false;
  }
}

/// Removes a folder that holds the mark, the mark last: whoever is killed in it leaves a leftover.
void remove_marked(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != OutputFolder::kMark) remove_tree(entry.path().string());
  }
  remove_tree(folder);
}

}  // namespace

OutputFolder::OutputFolder(const std::string& final_path, MayReplace may_replace)
    : final_(final_path), may_replace_(std::move(may_replace)) {
  while (final_.size() > 1 && final_.back() == '/') final_.pop_back();
  final_ = without_links(final_);
  try {
    check_place();
    fs::create_directories(parent_folder(final_));
    remove_leftovers();
  } catch (const fs::filesystem_error& e) {
    throw failed(final_, "a folder that can be made", e.code().message());
  }
  temporary_ = folder_beside(final_);
  // Waits for who is just looking whether this is a leftover. The mark comes after the lock:
  // without it the folder is none.
  lock_ = lock_folder(temporary_, 0);
  try {
    put_mark(temporary_);
  } catch (...) {
    discard();
    throw;
  }
}

OutputFolder::~OutputFolder() { discard(); }

void OutputFolder::discard() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void OutputFolder::check_place() const {
  if (!fs::exists(final_)) return;
  if (!fs::is_directory(final_)) {
    throw Error(ExitCode::io, final_, "a folder, or nothing yet", "a file", "choose another name");
  }
  if (!fs::is_empty(final_)) may_replace_(final_);
}

void OutputFolder::remove_leftovers() {
  const std::string name = fs::path(final_).filename().string();
  const std::string prefix = name + std::string(kSuffix.substr(0, kSuffix.size() - 6));
  std::error_code ignored;  // a folder that cannot be listed can still be written to
  for (fs::directory_iterator it(parent_folder(final_), ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string other = it->path().filename().string();
    if (other.size() != name.size() + kSuffix.size() || !other.starts_with(prefix)) continue;
    const std::string path = it->path().string();
    const int lock = lock_folder(path, LOCK_NB);
    if (lock < 0) continue;
    if (has_own_mark(path)) {
      try {
        remove_marked(path);
        removed_.push_back(path);
      } catch (const std::exception&) {
        // Another user's, perhaps: of no consequence for the work at hand.
      }
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
  std::string former;
  try {
    check_place();
    remove_tree(temporary_ + "/" + kMark);
    sync_folder(temporary_);
    // rename() replaces an empty folder, and what is being replaced is moved out of the way in one
    // step, so that at every moment the name is the old set's, the new one's or nobody's.
    if (fs::exists(final_) && !fs::is_empty(final_)) {
      former = folder_beside(final_);
      rename_path(final_, former);
    }
  } catch (const fs::filesystem_error& e) {
    throw failed(final_, "a folder that can be replaced", e.code().message());
  } catch (const Error&) {
    if (!former.empty()) ::rmdir(former.c_str());
    throw;
  }
  try {
    rename_path(temporary_, final_);
  } catch (const Error&) {
    if (!former.empty()) rename_path(former, final_);
    throw;
  }
  committed_ = true;
  sync_folder(parent_folder(final_));
  if (former.empty()) return;
  try {
    put_mark(former);
    remove_marked(former);
  } catch (const std::exception&) {
    // The new set is in its place; the next OutputFolder removes what is marked.
  }
}

}  // namespace bamtrain

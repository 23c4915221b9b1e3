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

constexpr std::string_view kSuffix = ".tmp-XXXXXX";  // as mkostemp(3) takes it

Error failed(const std::string& path, const std::string& expected, const std::string& found) {
  return Error(ExitCode::io, path, expected, found, "check permissions and free space");
}

/// Takes the lock of an open file; false where another process holds it or there are no locks.
bool lock(int descriptor, int how) {
  int result = 0;
  while ((result = ::flock(descriptor, LOCK_EX | how)) != 0 && errno == EINTR) {
  }
  return result == 0;
}

/// What a mark says: the machine, and what its folder holds.
enum class Holds { unfinished, former };

std::string mark_text(Holds holds) {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return std::string(name) + (holds == Holds::former ? "\nformer\n" : "\n");
}

/// "DIR/NAME", the folder of the mark "DIR/.NAME".
std::string folder_of_mark(const std::string& mark) {
  const size_t name = mark.rfind('/') + 1;
  return mark.substr(0, name) + mark.substr(name + 1);
}

std::string mark_pattern(const std::string& final_path) {
  const std::string name = "." + fs::path(final_path).filename().string() + std::string(kSuffix);
  return (fs::path(parent_folder(final_path)) / name).string();
}

/// Removes the folder of a mark; one that was to be replaced gets its name back where nothing else
/// has it. The mark goes last: whoever is killed here leaves a leftover. Whether a folder was there
/// to be removed.
bool settle(const std::string& mark, Holds holds, const std::string& final_path) {
  const std::string folder = folder_of_mark(mark);
  const bool there = fs::is_directory(fs::symlink_status(folder));
  const bool back = there && holds == Holds::former && !fs::exists(final_path);
  if (back) {
    rename_path(folder, final_path);
  } else if (there) {
    remove_tree(folder);
  }
  remove_tree(mark);
  return there && !back;
}

}  // namespace

/// A folder's name beside the final one, and its mark. The destructor settles.
class OutputFolder::Marked {
 public:
  Marked(const std::string& final_path, Holds holds) : final_(final_path), holds_(holds) {
    struct stat info {};
    do {
      if (descriptor_ >= 0) ::close(descriptor_);
      mark_ = mark_pattern(final_path);
      descriptor_ = ::mkostemp(mark_.data(), O_CLOEXEC);
      if (descriptor_ < 0)
        throw failed(final_path, "a folder that can be made", std::strerror(errno));
      // Waits for who is just looking whether this is a leftover; it was one then, and is gone.
      lock(descriptor_, 0);
    } while (::fstat(descriptor_, &info) == 0 && info.st_nlink == 0);
    folder_ = folder_of_mark(mark_);
    try {
      const std::string text = mark_text(holds);
      DurableFile file(mark_);
      file.write(text.data(), static_cast<int64_t>(text.size()));
      file.finish();
    } catch (...) {
      settle();
      throw;
    }
  }
  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;
  ~Marked() { settle(); }

  const std::string& folder() const { return folder_; }

  void settle() {
    if (descriptor_ < 0) return;
    try {
      bamtrain::settle(mark_, holds_, final_);
    } catch (const std::exception&) {
      // The next OutputFolder of this name tries again.
    }
    ::close(std::exchange(descriptor_, -1));
  }

 private:
  std::string final_;
  Holds holds_;
  std::string mark_, folder_;
  int descriptor_ = -1;  // the mark, locked
};

OutputFolder::OutputFolder(const std::string& final_path, MayReplace may_replace)
    : final_(final_path), may_replace_(std::move(may_replace)) {
  while (final_.size() > 1 && final_.back() == '/') final_.pop_back();
  final_ = without_links(final_);
  try {
    remove_leftovers();
    check_place();
    make_folders(parent_folder(final_));
  } catch (const fs::filesystem_error& e) {
    throw failed(final_, "a folder that can be made", e.code().message());
  }
  temporary_ = std::make_unique<Marked>(final_, Holds::unfinished);
  make_folder(temporary_->folder());
}

OutputFolder::~OutputFolder() = default;

const std::string& OutputFolder::path() const { return temporary_->folder(); }

void OutputFolder::check_place() const {
  if (!fs::exists(final_)) return;
  if (!fs::is_directory(final_)) {
    throw Error(ExitCode::io, final_, "a folder, or nothing yet", "a file", "choose another name");
  }
  if (!fs::is_empty(final_)) may_replace_(final_);
}

void OutputFolder::remove_leftovers() {
  const std::string pattern = fs::path(mark_pattern(final_)).filename().string();
  const std::string prefix = pattern.substr(0, pattern.size() - 6);
  std::error_code ignored;  // a folder that cannot be listed can still be written to
  for (fs::directory_iterator it(parent_folder(final_), ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (name.size() != pattern.size() || !name.starts_with(prefix)) continue;
    const std::string mark = it->path().string();
    const int descriptor = ::open(mark.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    try {
      if (lock(descriptor, LOCK_NB)) remove_leftover(mark);
    } catch (const std::exception&) {
      // Another user's, perhaps: of no consequence for the work at hand.
    }
    ::close(descriptor);
  }
  std::sort(removed_.begin(), removed_.end());
}

void OutputFolder::remove_leftover(const std::string& mark) {
  const std::string text = InputFile(mark, ExitCode::io, "").text(1024);
  const bool former = text == mark_text(Holds::former);
  if (text.empty()) {  // older than its folder
    remove_tree(mark);
  } else if (former || text == mark_text(Holds::unfinished)) {
    if (settle(mark, former ? Holds::former : Holds::unfinished, final_)) {
      removed_.push_back(folder_of_mark(mark));
    }
  }
}

std::string OutputFolder::subfolder(const std::string& name) const {
  const std::string path = this->path() + "/" + name;
  make_folder(path);
  return path;
}

void OutputFolder::commit() {
  std::unique_ptr<Marked> former;
  try {
    check_place();
    sync_folder(path());
    // rename() replaces an empty folder, and what is being replaced is moved out of the way in one
    // step, so that at every moment the name is the old set's, the new one's or nobody's.
    if (fs::exists(final_) && !fs::is_empty(final_)) {
      former = std::make_unique<Marked>(final_, Holds::former);
      rename_path(final_, former->folder());
    }
  } catch (const fs::filesystem_error& e) {
    throw failed(final_, "a folder that can be replaced", e.code().message());
  }
  rename_path(path(), final_);  // where this fails, the former set gets its name back
  sync_folder(parent_folder(final_));
  temporary_->settle();
}

}  // namespace bamtrain

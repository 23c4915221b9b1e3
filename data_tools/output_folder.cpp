#include "data_tools/output_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "data/manifest.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

Error failed(const std::string& path, const std::string& expected, const std::string& found) {
  return Error(ExitCode::io, path, expected, found, "check permissions and free space");
}

/// The first entry that `bamdata tokenize` would not have written, or nothing.
std::string foreign_entry(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path name = fs::relative(entry.path(), folder);
    const std::string last = name.filename().string();
    const bool in_set = name.parent_path() == "train" || name.parent_path() == "val";
    const bool known = entry.is_directory()
                           ? name == "train" || name == "val"
                           : in_set && (last == kManifestName || last.ends_with(".bin"));
    if (!known || entry.is_symlink()) return name.string();
  }
  return {};
}

/// Puts the entries of a folder on disk.
void sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const std::string found = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  if (!synced) throw failed(path, "a folder that reaches the disk", found);
}

/// A new folder beside `path`, named after it.
std::string folder_beside(const std::string& path) {
  std::string name = path + ".tmp-XXXXXX";
  if (!::mkdtemp(name.data()))
    throw failed(path, "a folder that can be made", std::strerror(errno));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(name.c_str(), 0777 & ~mask);
  return name;
}

}  // namespace

OutputFolder::OutputFolder(const std::string& final_path, bool overwrite) : final_(final_path) {
  while (final_.size() > 1 && final_.back() == '/') final_.pop_back();
  try {
    if (fs::exists(final_) && !fs::is_directory(final_)) {
      throw Error(ExitCode::io, final_, "a folder, or nothing yet", "a file",
                  "choose another name");
    }
    if (fs::exists(final_) && !fs::is_empty(final_)) {
      if (!overwrite) {
        throw Error(ExitCode::io, final_, "an empty folder, or nothing yet",
                    "a folder with content", "choose another --output, or add --overwrite");
      }
      const std::string foreign = foreign_entry(final_);
      if (!foreign.empty()) {
        throw Error(ExitCode::io, final_, "nothing but token shards to overwrite", foreign,
                    "choose another --output, or remove the folder yourself");
      }
    }
    const fs::path parent = fs::path(final_).parent_path();
    if (!parent.empty()) fs::create_directories(parent);
  } catch (const fs::filesystem_error& e) {
    throw failed(final_, "a folder that can be made", e.code().message());
  }
  temporary_ = folder_beside(final_);
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

std::string OutputFolder::subfolder(const std::string& name) const {
  const std::string path = temporary_ + "/" + name;
  if (::mkdir(path.c_str(), 0777) != 0) {
    throw failed(path, "a folder that can be made", std::strerror(errno));
  }
  return path;
}

void OutputFolder::commit() {
  sync_folder(temporary_);
  // rename() replaces an empty folder, and what is being replaced is moved out of the way in one
  // step, so that at every moment the name is the old set's, the new one's or nobody's.
  std::error_code code;
  std::string former;
  if (fs::exists(final_, code) && !fs::is_empty(final_, code)) {
    former = folder_beside(final_);
    if (std::rename(final_.c_str(), former.c_str()) != 0) {
      const std::string found = std::strerror(errno);
      ::rmdir(former.c_str());
      throw failed(final_, "a folder that can be replaced", found);
    }
  }
  if (std::rename(temporary_.c_str(), final_.c_str()) != 0) {
    const std::string found = std::strerror(errno);
    if (!former.empty()) std::rename(former.c_str(), final_.c_str());
    throw failed(final_, "a name that a folder can have", found);
  }
  committed_ = true;
  const fs::path parent = fs::path(final_).parent_path();
  sync_folder(parent.empty() ? "." : parent.string());
  if (!former.empty()) fs::remove_all(former, code);
}

}  // namespace bamtrain

#include "data_tools/partial_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/durable_file.h"
#include "core/error.h"

namespace bamtrain {

namespace fs = std::filesystem;

namespace {

void remove_content(const std::string& folder) {
  std::vector<std::string> entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != FolderLock::kName) entries.push_back(entry.path().string());
  }
  for (const std::string& entry : entries) remove_tree(entry);
}

}  // namespace

std::string PartialFolder::place_of(const std::string& final_path) {
  return FolderPlace::named(final_path) + ".partial";
}

bool PartialFolder::is_one(const std::string& path) {
  const auto refuse = [&](const std::string& found) {
    throw Error(ExitCode::io, path, "nothing yet, or the folder in which `bamdata tokenize` works",
                found, "move it away, or choose another --output");
  };
  std::error_code reason;
  const fs::file_type type = fs::symlink_status(path, reason).type();
  if (type == fs::file_type::not_found) return false;
  if (type == fs::file_type::symlink) refuse("a symbolic link");
  if (type != fs::file_type::directory)
    refuse(type == fs::file_type::none ? reason.message() : "a file");
  const fs::directory_iterator first(path, reason);
  if (reason) refuse(reason.message());
  if (first == fs::directory_iterator()) return true;
  const auto has = [&](const char* name) {
    return fs::symlink_status(path + "/" + name, reason).type() == fs::file_type::regular;
  };
  if (!has(FolderLock::kName) && !has(kJournal)) {
    refuse("a folder with " + first->path().filename().string() + ", without " + FolderLock::kName +
           " and " + kJournal);
  }
  return true;
}

void PartialFolder::remove(const std::string& path) {
  remove_content(path);
  remove_tree(path);
}

PartialFolder::PartialFolder(const std::string& final_path, FolderPlace::MayReplace may_replace)
    : place_(final_path, std::move(may_replace)), path_(place_of(place_.path())) {
  if (!is_one(path_)) make_folders(path_);
  lock_ = std::make_unique<FolderLock>(path_);
}

PartialFolder::~PartialFolder() {
  if (!kept_) remove();
}

void PartialFolder::clear() {
  kept_ = false;
  remove_content(path_);
}

void PartialFolder::remove() {
  try {
    remove(path_);
  } catch (const std::exception&) {
    // Of no consequence for what is complete; the next PartialFolder of this name clears it.
  }
}

void PartialFolder::commit() {
  const std::string former = place_.take(output());
  kept_ = false;
  if (former.empty() || former.starts_with(path_ + "/")) return;
  try {
    remove_tree(former);
  } catch (const Error&) {
    // The new set is in its place.
  }
}

}  // namespace bamtrain

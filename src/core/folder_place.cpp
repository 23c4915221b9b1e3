#include "core/folder_place.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

Error failed(const std::string& path, const char* action, const fs::filesystem_error& e) {
  return system_error(ExitCode::io, path, action, e.code().value(),
                      "check permissions and free space");
}

}  // namespace

std::string FolderPlace::named(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && (name.back() == '/' || name.ends_with("/."))) name.pop_back();
  return without_links(name);
}

FolderPlace::FolderPlace(const std::string& path, MayReplace may_replace)
    : path_(named(path)), may_replace_(std::move(may_replace)) {
  try {
    check();
    make_folders(parent_folder(path_));
  } catch (const fs::filesystem_error& e) {
    throw failed(path_, "create the folder", e);
  }
}

void FolderPlace::check() const {
  if (!fs::exists(path_)) return;
  if (!fs::is_directory(path_)) {
    throw Error::fault(ExitCode::io, path_, "a file of this name exists", "choose another name");
  }
  if (!fs::is_empty(path_)) may_replace_(path_);
}

/// Exchanges the folders in one step if possible, so that the name always refers to the old or the
/// new folder.
std::string FolderPlace::replace_former(const std::string& folder) {
  if (exchange_paths(folder, path_)) return folder;
  const std::string former = make_new_folder(path_ + ".former-");
  try {
    rename_path(path_, former);
  } catch (const Error&) {
    ::rmdir(former.c_str());
    throw;
  }
  try {
    rename_path(folder, path_);
  } catch (const Error&) {
    rename_path(former, path_);
    throw;
  }
  try {
    rename_path(former, folder);
  } catch (const Error&) {  // the new folder is already in place
    return former;
  }
  return folder;
}

std::string FolderPlace::take(const std::string& folder) {
  bool replaced = false;
  try {
    check();
    sync_folder(folder);
    replaced = fs::exists(path_) && !fs::is_empty(path_);
  } catch (const fs::filesystem_error& e) {
    throw failed(path_, "replace the folder", e);
  }
  std::string former;
  if (replaced) {
    former = replace_former(folder);
  } else {
    rename_path(folder, path_);  // also replaces an empty folder
  }
  sync_folder(parent_folder(path_));
  return former;
}

}  // namespace bamtrain

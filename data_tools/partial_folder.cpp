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
  return fs::is_directory(path) &&
         (fs::is_empty(path) || fs::exists(path + "/" + FolderLock::kName));
}

void PartialFolder::remove(const std::string& path) {
  remove_content(path);
  remove_tree(path);
}

PartialFolder::PartialFolder(const std::string& final_path, FolderPlace::MayReplace may_replace)
    : place_(final_path, std::move(may_replace)), path_(place_of(place_.path())) {
  make_folders(path_);
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

#include "data_tools/partial_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"

namespace bamtrain {

namespace fs = std::filesystem;

std::string PartialFolder::place_of(const std::string& final_path) {
  return FolderPlace::named(final_path) + ".partial";
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
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() != FolderLock::kName) remove_tree(entry.path().string());
  }
}

/// The lock goes last: whoever comes before finds it held.
void PartialFolder::remove() {
  try {
    clear();
    remove_tree(path_);
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

#include "data_tools/partial_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/durable_file.h"
#include "core/error.h"
#include "data/manifest.h"
#include "data_tools/document_shuffle.h"
#include "data_tools/shard_folders.h"
#include "data_tools/tokenize_journal.h"

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

/// The final name of a file written as `name`: the same, or the target's if it is an AtomicFile's
/// temporary.
fs::path final_name(const fs::path& name) {
  for (const char* file : {TokenizeJournal::kName, kManifestName, kPartName}) {
    if (is_temporary_of(name.filename().string(), file)) return name.parent_path() / file;
  }
  return name;
}

/// Whether `bamdata tokenize` creates an entry of this name and type in the PartialFolder `folder`.
bool is_partial_entry(const fs::path& folder, const fs::path& name, fs::file_type type) {
  const bool is_folder = type == fs::file_type::directory;
  if (*name.begin() == PartialFolder::kOutput) {
    const fs::path within = name.lexically_relative(PartialFolder::kOutput);
    return within == "."
               ? is_folder
               : is_shard_entry(folder / PartialFolder::kOutput, final_name(within), type);
  }
  if (is_folder) return name == PartialFolder::kShuffle;
  if (type != fs::file_type::regular) return false;
  if (name.parent_path() == PartialFolder::kShuffle) {
    return DocumentShuffle::is_bucket(name.filename().string());
  }
  const fs::path file = final_name(name);
  return file == FolderLock::kName || file == PartialFolder::kHeld ||
         file == TokenizeJournal::kName;
}

/// The first entry that `bamdata tokenize` does not create, or "".
std::string foreign_partial_entry(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path name = entry.path().lexically_relative(folder);
    if (!is_partial_entry(folder, name, entry.symlink_status().type())) return name.string();
  }
  return {};
}

}  // namespace

std::string PartialFolder::place_of(const std::string& final_path) {
  return FolderPlace::named(final_path) + ".partial";
}

bool PartialFolder::is_one(const std::string& path) {
  const auto refuse = [&](const std::string& found) {
    throw Error(ExitCode::io, path, "no such folder yet, or a partial output of `bamdata tokenize`",
                found, "move it elsewhere, or choose another --output");
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
  if (has(TokenizeJournal::kName)) {
    read_journal(path + "/" + TokenizeJournal::kName);
  } else if (!has(FolderLock::kName)) {
    refuse("a folder with " + first->path().filename().string() + ", without " + FolderLock::kName +
           " and " + TokenizeJournal::kName);
  }
  std::string foreign;
  try {
    foreign = foreign_partial_entry(path);
  } catch (const fs::filesystem_error& e) {
    refuse("a folder that cannot be read: " + e.code().message());
  }
  if (!foreign.empty()) refuse("a folder with " + foreign + ", which it does not make");
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
    // Harmless for complete output; the next PartialFolder of this name clears it.
  }
}

void PartialFolder::commit() {
  const std::string former = place_.take(output());
  kept_ = false;
  if (former.empty() || former.starts_with(path_ + "/")) return;
  try {
    remove_tree(former);
  } catch (const Error&) {
    // The new set is already in place.
  }
}

}  // namespace bamtrain

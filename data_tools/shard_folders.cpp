#include "data_tools/shard_folders.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/utf8.h"
#include "data/manifest.h"
#include "data_tools/progress.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

/// The first entry that `bamdata tokenize` does not write, or "".
std::string foreign_entry(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path name = entry.path().lexically_relative(folder);
    if (!is_shard_entry(folder, name, entry.symlink_status().type())) return name.string();
  }
  return {};
}

bool is_named_tokenizer(const fs::path& set, const std::string& file) {
  try {
    const std::string named = read_manifest((set / kManifestName).string()).tokenizer_file;
    return !named.empty() && (file == named || is_temporary_of(file, named));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> shard_sources(const std::string& path) {
  std::vector<std::string> found;
  std::error_code code;
  for (const char* name : {"train", "val"}) {
    const auto folder = std::filesystem::path(path) / name;
    if (std::filesystem::exists(folder / kManifestName, code)) found.push_back(folder.string());
  }
  if (found.empty()) found.push_back(path);
  return found;
}

std::string describe_set(const std::string& path, const Manifest& m) {
  return fmt::format("{}: {}, {}, {}\n", printable(path), counted(m.tokens, "token"),
                     counted(m.documents, "document"),
                     counted(static_cast<int64_t>(m.shards.size()), "shard"));
}

bool is_shard_entry(const fs::path& folder, const fs::path& name, fs::file_type type) {
  if (type == fs::file_type::directory) return name == "train" || name == "val";
  if (type != fs::file_type::regular) return false;
  const std::string last = name.filename().string();
  const bool in_set = name.parent_path() == "train" || name.parent_path() == "val";
  if (!in_set) return name == kPartName;
  return last == kManifestName || last.ends_with(".bin") ||
         is_named_tokenizer(folder / name.parent_path(), last);
}

OutputFolder::MayReplace may_replace_shards(bool overwrite) {
  return [overwrite](const std::string& folder) {
    if (!overwrite) {
      throw Error(ExitCode::io, folder, "an empty or new folder", "a folder with content",
                  "choose another --output, or add --overwrite");
    }
    const std::string foreign = foreign_entry(folder);
    if (!foreign.empty()) {
      throw Error(ExitCode::io, folder, "only token shards to overwrite", foreign,
                  "choose another --output, or remove the folder yourself");
    }
  };
}

}  // namespace bamtrain

#include "data_tools/shard_folders.h"

#include <filesystem>
#include <system_error>

#include "data/manifest.h"

namespace bamtrain {

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

}  // namespace bamtrain

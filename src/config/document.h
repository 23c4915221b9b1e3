#pragma once
// The JSON document of a run configuration. In a file it may name another file as its base:
//
//   {"base": "bam-120m.json", "name": "rope", "out_dir": "out/rope",
//    "model": {"attention": {"prior": "rope"}}}
//
// The path is relative to the folder of the file that names it. Objects are merged key by key; the
// file's lists and mechanisms replace the base's. The base's config_version holds for both, its
// name and out_dir do not.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace bamtrain {

struct ConfigDocument {
  nlohmann::json root;  // an object, without "base" and "$schema"
  std::string file;     // for messages
  /// Of the keys that a base wrote: its file. A key whose value is an object has no entry, but
  /// for mechanisms.
  std::map<std::string, std::string> files = {};
};

/// Maximum number of files of a configuration.
inline constexpr int kMostConfigFiles = 8;

/// Reads the configuration in file `path` and its bases. Throws Error: (io) if the file cannot be
/// read; (config) if it is not a JSON object, or a base is missing, is its own base, or has another
/// config_version, or there are more than kMostConfigFiles.
ConfigDocument read_config_document(const std::string& path);

/// The same for a text without a base; `where` replaces the file in messages.
ConfigDocument parse_config_document(const std::string& text, const std::string& where);

/// The config_version of a document; the newest if it has no known one.
int64_t config_version_of(const nlohmann::json& root);

}  // namespace bamtrain

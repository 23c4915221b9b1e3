#include "config/document.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "config/keys.h"
#include "config/origin.h"
#include "config/renamed_keys.h"
#include "config/value_schema.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/join.h"
#include "core/json.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kLargestFile = size_t{1} << 20;

/// The remedy for a folder: "did you mean RUN/config.json?".
std::string file_in(const std::string& folder) {
  const std::string own = (fs::path(folder) / "config.json").string();
  std::error_code ignored;
  return fs::exists(own, ignored) ? "did you mean " + own + "?" : "name the file in it";
}

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw Error(ExitCode::io, path, "a configuration file", "a folder", file_in(path));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw system_error(ExitCode::io, path, "read", errno == 0 ? EIO : errno,
                       errno == EACCES ? "check its permissions" : "check the name");
  }
  std::string text(kLargestFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) {
    throw system_error(ExitCode::io, path, "read", EIO, "check the disk");
  }
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kLargestFile) {
    throw Error::fault(ExitCode::config, path, "larger than 1 MiB", "name a run configuration");
  }
  return text;
}

json parse_object(const std::string& text, const std::string& file) {
  json root = parse_json(text, {file, ExitCode::config});
  if (root.is_object()) return root;
  throw Error(ExitCode::config, file, "an object with the keys " + join(members("")),
              describe_value(root), "write {\"" + members("")[0] + "\": ...}");
}

/// Removes "$schema", which only editors use.
void drop_schema_reference(json& root, const std::string& file) {
  const auto reference = root.find("$schema");
  if (reference == root.end()) return;
  if (!reference->is_string()) {
    throw Error(ExitCode::config, Origin{file}.at("$schema"),
                "the path or URL of a JSON Schema, a string", describe_value(*reference),
                "name the file that --print-schema wrote, or remove it");
  }
  root.erase(reference);
}

/// Removes "base" and returns its path from the current folder; empty if there is none.
std::string take_base(json& root, const std::string& file) {
  const auto found = root.find("base");
  if (found == root.end()) return "";
  if (!found->is_string() || *found == "") {
    throw Error(ExitCode::config, Origin{file}.at("base"), "the path of a configuration, a string",
                describe_value(*found), "name the file, or remove it");
  }
  const std::string named = found->get<std::string>();
  root.erase(found);
  // As the system reads it: ".." behind a symbolic link is the link's target's parent.
  return (fs::path(file).parent_path() / named).string();
}

/// The files from `path` to its last base.
std::vector<ConfigDocument> read_chain(const std::string& path) {
  std::vector<ConfigDocument> chain;
  std::string next = path;
  while (!next.empty()) {
    ConfigDocument document{parse_object(read_file(next), next), next};
    drop_schema_reference(document.root, next);
    const std::string base = take_base(document.root, next);
    chain.push_back(std::move(document));
    next = base;
    if (next.empty()) break;
    const std::string where = Origin{chain.back().file}.at("base");
    std::error_code ignored;
    if (!fs::exists(next, ignored)) {
      throw no_such_file(ExitCode::config, where + ": " + next,
                         "name it relative to the folder of " + chain.back().file);
    }
    for (const ConfigDocument& earlier : chain) {
      if (!fs::equivalent(earlier.file, next, ignored)) continue;
      throw Error::fault(ExitCode::config, where,
                         next + (&earlier == &chain.back() ? " is this file itself"
                                                           : " has this file as its own base"),
                         "remove it, or name another");
    }
    if (chain.size() == kMostConfigFiles) {
      throw Error(ExitCode::config, where, "at most " + std::to_string(kMostConfigFiles) + " files",
                  "one more, " + next, "join some of them");
    }
  }
  return chain;
}

/// Whether the values of two files at `path` are merged, and not replaced.
bool is_merged(const std::string& path) {
  if (is_group(path)) return true;
  const Key* const key = find_key(path);
  return key != nullptr && !key->names_mechanism && key->schema.contains("additionalProperties");
}

/// Notes `file` for `value` at `path`, in place of files of what it replaces.
void note_file(const json& value, const std::string& path, const std::string& file,
               std::map<std::string, std::string>* files) {
  std::erase_if(*files, [&path](const auto& entry) { return lies_in(entry.first, path); });
  if (!is_merged(path) || !value.is_object()) {
    (*files)[path] = file;
    return;
  }
  for (const auto& [name, member] : value.items()) {
    note_file(member, path + "." + name, file, files);
  }
}

void merge(const json& object, const std::string& group, const std::string& file, json* into,
           std::map<std::string, std::string>* files) {
  for (const auto& [name, value] : object.items()) {
    const std::string path = group.empty() ? name : group + "." + name;
    json& at = (*into)[name];
    if (is_merged(path) && value.is_object() && at.is_object()) {
      merge(value, path, file, &at, files);
    } else {
      at = value;
      note_file(value, path, file, files);
    }
  }
}

/// Gives a file the version of its base, or none if that has none.
void take_version(ConfigDocument& document, const ConfigDocument& base) {
  json& root = document.root;
  const auto version = base.root.find("config_version");
  const bool none = version == base.root.end();
  if (root.contains("config_version") && (none || root["config_version"] != *version)) {
    throw Error(ExitCode::config, Origin{document.file}.at("config_version"),
                (none ? "none" : version->dump()) + ", as in " + base.file,
                root["config_version"].dump(), none ? "set it in the base" : "remove it");
  }
  if (!none) root["config_version"] = *version;
}

}  // namespace

ConfigDocument read_config_document(const std::string& path) {
  std::vector<ConfigDocument> chain = read_chain(path);
  ConfigDocument out = std::move(chain.back());
  if (chain.size() == 1) return out;
  accept_earlier_names(out.root, Origin{out.file});
  std::map<std::string, std::string> files;
  for (const auto& [name, value] : out.root.items()) note_file(value, name, out.file, &files);
  for (chain.pop_back(); !chain.empty(); chain.pop_back()) {
    ConfigDocument& document = chain.back();
    take_version(document, out);
    accept_earlier_names(document.root, Origin{document.file});
    for (const char* own : {"name", "out_dir"}) {
      out.root.erase(own);
      files.erase(own);
    }
    merge(document.root, "", document.file, &out.root, &files);
    out.file = document.file;
  }
  out.files = std::move(files);
  return out;
}

ConfigDocument parse_config_document(const std::string& text, const std::string& where) {
  ConfigDocument document{parse_object(text, where), where};
  drop_schema_reference(document.root, where);
  return document;
}

int64_t config_version_of(const json& root) {
  const json* found = find_value(root, "config_version");
  if (found == nullptr || !is_whole(*found)) return kConfigVersion;
  return *found >= 1 && *found < kConfigVersion ? found->get<int64_t>() : kConfigVersion;
}

}  // namespace bamtrain

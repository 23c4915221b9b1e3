#include "checkpoint/manifest.h"

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_file.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"

namespace bamtrain::checkpoint_files {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxManifest = 1 << 20;

[[noreturn]] void refuse_manifest(const std::string& where, const std::string& expected,
                                  const std::string& found) {
  throw Error(ExitCode::checkpoint, where, expected, found, kDamagedRemedy);
}

std::string text_of(const Digests& files) {
  Json list = Json::object();
  for (const auto& [name, digest] : files) {
    list[name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  }
  return Json{{"files", list}}.dump(2) + "\n";
}

Digests read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifest;
  const std::string text = open_checkpoint_file(path).text(kMaxManifest);
  const Json manifest = parse_json(text, {path, ExitCode::checkpoint, kDamagedRemedy});
  if (!manifest.is_object() || !manifest.contains("files") || !manifest["files"].is_object()) {
    refuse_manifest(path, "an object with files", manifest.type_name());
  }
  Digests files;
  for (const auto& [name, entry] : manifest["files"].items()) {
    const std::string where = path + ": files." + name.substr(0, 100);
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
      refuse_manifest(where, "the name of a file in the same folder", "another name");
    }
    if (!entry.is_object() || !entry.contains("bytes") || !entry["bytes"].is_number_unsigned() ||
        !entry.contains("sha256") || !entry["sha256"].is_string()) {
      refuse_manifest(where, "bytes and sha256", abbreviate(entry.dump()));
    }
    files[name] = {entry["bytes"].get<int64_t>(), entry["sha256"].get<std::string>()};
  }
  if (text != text_of(files)) {
    refuse_manifest(path, "the exact text that bamtrain writes for these files", "other text");
  }
  return files;
}

void verify(const std::string& folder, const std::string& name, const FileDigest& expected) {
  const InputFile file = open_checkpoint_file(folder + "/" + name);
  if (file.bytes() != expected.bytes) {
    refuse_manifest(file.path(), std::to_string(expected.bytes) + " bytes",
                    std::to_string(file.bytes()));
  }
  const std::string found = file.sha256();
  if (found != expected.sha256) refuse_manifest(file.path(), "SHA-256 " + expected.sha256, found);
}

}  // namespace

void write_manifest(const std::string& folder, const Digests& files) {
  const std::string text = text_of(files);
  DurableFile file(folder + "/" + kManifest);
  file.write(text.data(), static_cast<int64_t>(text.size()));
  file.finish();
}

Digests verify_manifest(const std::string& folder) {
  const Digests files = read_manifest(folder);
  for (const auto& [name, expected] : files) verify(folder, name, expected);
  return files;
}

void verify_file(const std::string& folder, const std::string& name) {
  const Digests files = read_manifest(folder);
  const auto found = files.find(name);
  if (found == files.end()) {
    throw Error::fault(ExitCode::checkpoint, folder + "/" + kManifest, "no entry for " + name,
                       kDamagedRemedy);
  }
  verify(folder, name, found->second);
}

}  // namespace bamtrain::checkpoint_files

#include "checkpoint/weights_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/safetensors_format.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"

namespace bamtrain {
namespace {

using Json = nlohmann::json;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kRemedy = "use another folder, or restore this one from a copy";
constexpr int64_t kMaxIndex = int64_t{100} << 20;

[[noreturn]] void refuse_weights(const std::string& where, const std::string& expected,
                                 const std::string& found) {
  throw Error(ExitCode::checkpoint, where, expected, found, kRemedy);
}

int64_t bytes_of(const NamedTensor& t) {
  const auto bytes = safetensors::byte_size(t.dtype, t.shape);
  require(bytes.has_value(), "tensors with sizes below 2^63");
  return *bytes;
}

std::vector<std::vector<NamedTensor>> split(const std::vector<NamedTensor>& tensors,
                                            int64_t max_shard_bytes) {
  std::vector<std::vector<NamedTensor>> shards;
  int64_t room = 0;
  for (const NamedTensor& t : tensors) {
    const int64_t bytes = bytes_of(t);
    if (shards.empty() || bytes > room) {
      shards.emplace_back();
      room = max_shard_bytes;
    }
    shards.back().push_back(t);
    room -= bytes;
  }
  return shards;
}

/// Maps each tensor to its file, from the index in `folder`.
std::map<std::string, std::string> read_index(const std::string& folder) {
  const std::string path = folder + "/" + kIndex;
  const Json index = parse_json(InputFile(path, ExitCode::checkpoint, kRemedy).text(kMaxIndex),
                                {path, ExitCode::checkpoint, kRemedy});
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object() ||
      index["weight_map"].empty()) {
    refuse_weights(path, "an object with a weight_map of tensors", abbreviate(index.dump()));
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const std::string where = path + ": weight_map." + abbreviate(tensor);
    if (!file.is_string()) refuse_weights(where, "the name of a file", file.type_name());
    const std::string& name = file.get_ref<const std::string&>();
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string("/\\\0", 3)) != std::string::npos) {
      refuse_weights(where, "the name of a file in the same folder", abbreviate(file.dump()));
    }
    files[tensor] = name;
  }
  return files;
}

}  // namespace

void write_weights(const std::string& folder, const std::vector<NamedTensor>& tensors,
                   int64_t max_shard_bytes) {
  require(max_shard_bytes >= 1, "shards that hold something");
  const auto write = [&folder](const std::string& name, const std::vector<NamedTensor>& shard) {
    std::map<std::string, std::string> metadata = digests_of(shard);
    metadata["format"] = "pt";  // marks a PyTorch model for Hugging Face's readers
    write_safetensors(folder + "/" + name, shard, metadata);
  };
  const auto shards = split(tensors, max_shard_bytes);
  if (shards.size() <= 1) {
    write(kSingle, tensors);
    return;
  }
  int64_t total = 0;
  Json map = Json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write(name, shards[i]);
    for (const NamedTensor& t : shards[i]) {
      total += bytes_of(t);
      map[t.name] = name;
    }
  }
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  const std::string text = index.dump(2) + "\n";
  DurableFile file(folder + "/" + kIndex);
  file.write(text.data(), static_cast<int64_t>(text.size()));
  file.finish();
}

WeightsFolder WeightsFolder::open(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool single = fs::exists(folder + "/" + kSingle, ignored);
  const bool sharded = fs::exists(folder + "/" + kIndex, ignored);
  if (single == sharded) {
    refuse_weights(folder, fmt::format("a folder with {} or {}", kSingle, kIndex),
                   single                              ? "both"
                   : fs::is_directory(folder, ignored) ? "neither"
                   : fs::exists(folder, ignored)       ? "a file"
                                                       : "no such folder");
  }
  WeightsFolder result;
  std::map<std::string, std::string> index;
  std::set<std::string> names;
  if (single) {
    names.insert(kSingle);
  } else {
    index = read_index(folder);
    for (const auto& [tensor, file] : index) names.insert(file);
  }
  // tensors_ points into these elements, so they must not move.
  result.files_.reserve(names.size());
  for (const std::string& name : names) {
    result.names_.push_back(name);
    result.files_.push_back(SafetensorsFile::open(folder + "/" + name));
    const SafetensorsFile& file = result.files_.back();
    for (const SafetensorsFile::Entry& e : file.tensors()) {
      if (!single && (index.count(e.name) == 0 || index[e.name] != name)) {
        refuse_weights(file.path(), "only the tensors listed in " + std::string(kIndex),
                       "tensor \"" + abbreviate(e.name) + "\"");
      }
      result.tensors_[e.name] = {&file, &e};
    }
  }
  for (const auto& [tensor, file] : index) {
    if (result.tensors_.count(tensor)) continue;
    throw Error::fault(ExitCode::checkpoint, folder + "/" + file,
                       "no tensor \"" + abbreviate(tensor) + "\", which " + kIndex + " lists",
                       kRemedy);
  }
  return result;
}

}  // namespace bamtrain

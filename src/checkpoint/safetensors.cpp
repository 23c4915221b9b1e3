#include "checkpoint/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "checkpoint/safetensors_format.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/json.h"
#include "core/sha256.h"

namespace bamtrain {
namespace {

using Json = nlohmann::json;
using Entry = SafetensorsFile::Entry;

[[noreturn]] void refuse_file(const std::string& where, const std::string& expected,
                              const std::string& found) {
  throw Error(ExitCode::checkpoint, where, expected, found, kDamagedRemedy);
}

/// "FILE: tensor "NAME"". Shortens the name, which may be as long as the file.
std::string tensor_in(const std::string& path, const std::string& name) {
  constexpr size_t kShown = 200;
  return path + ": tensor \"" + (name.size() > kShown ? name.substr(0, kShown) + "..." : name) +
         "\"";
}

std::string describe(Dtype dtype, const std::vector<int64_t>& shape) {
  std::string s = "(";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + ") " + safetensors::format_name(dtype);
}

std::optional<Dtype> dtype_named(const std::string& name) {
  for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16, Dtype::i32, Dtype::f16, Dtype::u8}) {
    if (name == safetensors::format_name(t)) return t;
  }
  if (name == "BOOL") return Dtype::u8;
  return std::nullopt;
}

/// A member of a header: a list of integers in [0, 2^63).
std::vector<int64_t> sizes_in(const Json& tensor, const char* key, const std::string& where) {
  const std::string expected = std::string(key) + " as a list of sizes below 2^63";
  if (!tensor.contains(key)) throw missing(ExitCode::checkpoint, where, expected, kDamagedRemedy);
  const Json& list = tensor[key];
  if (!list.is_array()) refuse_file(where, expected, list.type_name());
  std::vector<int64_t> sizes;
  sizes.reserve(list.size());
  for (const Json& number : list) {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    if (!number.is_number_unsigned() || number.get<uint64_t>() > kMax) {
      refuse_file(where, expected, "another element");
    }
    sizes.push_back(number.get<int64_t>());
  }
  return sizes;
}

/// Parses one tensor of the header; its offset is still relative to the end of the header.
Entry entry_of(const std::string& name, const Json& tensor, const std::string& where) {
  if (!tensor.is_object() || tensor.size() != 3) {
    refuse_file(
        where, "an object of dtype, shape and data_offsets",
        std::string(tensor.type_name()) + " with " + std::to_string(tensor.size()) + " members");
  }
  if (!tensor.contains("dtype") || !tensor["dtype"].is_string()) {
    throw missing(ExitCode::checkpoint, where, "a dtype", kDamagedRemedy);
  }
  const std::string& found = tensor["dtype"].get_ref<const std::string&>();
  const std::optional<Dtype> dtype = dtype_named(found);
  if (!dtype) {
    throw Error(ExitCode::checkpoint, where, "dtype F64, F32, F16, BF16, I32, U8 or BOOL",
                "dtype " + abbreviate(found, 40), "convert the file");
  }

  Entry entry{name, *dtype, sizes_in(tensor, "shape", where), 0, 0};
  const std::vector<int64_t> range = sizes_in(tensor, "data_offsets", where);
  if (range.size() != 2 || range[0] > range[1]) {
    refuse_file(where, "data_offsets as begin and end",
                std::to_string(range.size()) + " numbers" + (range.size() == 2 ? ", falling" : ""));
  }
  const std::optional<int64_t> bytes = safetensors::byte_size(*dtype, entry.shape);
  if (!bytes) refuse_file(where, "a size below 2^63", describe(*dtype, entry.shape));
  if (*bytes != range[1] - range[0]) {
    refuse_file(where, std::to_string(*bytes) + " bytes for " + describe(*dtype, entry.shape),
                std::to_string(range[1] - range[0]));
  }
  entry.offset = range[0];
  entry.bytes = *bytes;
  return entry;
}

std::map<std::string, std::string> metadata_of(const Json& value, const std::string& path) {
  const std::string where = path + ": " + safetensors::kMetadata;
  if (!value.is_object()) refuse_file(where, "an object of strings", value.type_name());
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) refuse_file(where, "an object of strings", text.type_name());
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

/// The tensors must tile the bytes after the header: each begins where the previous one ends.
void check_tiling(std::vector<Entry>& entries, int64_t data_bytes, const std::string& path) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  int64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.offset != end) {
      refuse_file(tensor_in(path, entry.name), "data from offset " + std::to_string(end),
                  std::to_string(entry.offset));
    }
    end += entry.bytes;  // at most the largest end of a range, which is below 2^63
  }
  if (end != data_bytes) {
    refuse_file(path, std::to_string(end) + " bytes of tensors after the header",
                std::to_string(data_bytes));
  }
}

/// Either every tensor and nothing else has a digest, or there are no digests.
void check_digests(const std::map<std::string, std::string>& metadata,
                   const std::vector<Entry>& entries, const std::string& path) {
  const std::string prefix = safetensors::kDigest;
  std::set<std::string> named;
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(prefix)) named.insert(key.substr(prefix.size()));
  }
  if (named.empty()) return;
  for (const Entry& entry : entries) {
    if (named.erase(entry.name) == 0) {
      throw missing(ExitCode::checkpoint, tensor_in(path, entry.name),
                    "its SHA-256 in the metadata", kDamagedRemedy);
    }
  }
  if (!named.empty()) {
    throw missing(ExitCode::checkpoint, tensor_in(path, *named.begin()),
                  "the metadata have its SHA-256", kDamagedRemedy);
  }
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result{open_checkpoint_file(path)};
  const InputFile& file = result.file_;
  if (file.bytes() < safetensors::kLengthBytes) {
    refuse_file(path, "a safetensors file of at least 8 bytes", std::to_string(file.bytes()));
  }
  uint64_t length = 0;
  file.read(0, &length, safetensors::kLengthBytes);
  const int64_t rest = file.bytes() - safetensors::kLengthBytes;
  const int64_t limit = std::min(rest, safetensors::kMaxHeader);
  if (length > static_cast<uint64_t>(limit)) {
    refuse_file(path, "a header of at most " + std::to_string(limit) + " bytes",
                std::to_string(length));
  }
  std::string text(static_cast<size_t>(length), '\0');
  file.read(safetensors::kLengthBytes, text.data(), static_cast<int64_t>(length));
  if (text.empty() || text[0] != '{')
    refuse_file(path, "a header that begins with {", "another header");

  const Json header = parse_json(text, {path, ExitCode::checkpoint, kDamagedRemedy});
  for (const auto& [name, value] : header.items()) {
    if (name == safetensors::kMetadata) {
      result.metadata_ = metadata_of(value, path);
    } else {
      result.entries_.push_back(entry_of(name, value, tensor_in(path, name)));
    }
  }
  const int64_t header_bytes = static_cast<int64_t>(length);
  check_tiling(result.entries_, rest - header_bytes, path);
  for (Entry& entry : result.entries_) entry.offset += safetensors::kLengthBytes + header_bytes;
  std::sort(result.entries_.begin(), result.entries_.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  check_digests(result.metadata_, result.entries_, path);
  return result;
}

const Entry* SafetensorsFile::find(const std::string& name) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& e, const std::string& n) { return e.name < n; });
  return it != entries_.end() && it->name == name ? &*it : nullptr;
}

void SafetensorsFile::read(const Entry& entry, void* out) const {
  file_.read(entry.offset, out, entry.bytes);
  const auto digest = metadata_.find(safetensors::kDigest + entry.name);
  if (digest == metadata_.end()) return;
  const std::string found =
      sha256_hex({static_cast<const char*>(out), static_cast<size_t>(entry.bytes)});
  if (found == digest->second) return;
  throw Error(ExitCode::checkpoint, tensor_in(file_.path(), entry.name),
              "SHA-256 " + abbreviate(digest->second, 64) + ", as in the file's metadata", found,
              "restore the file from a copy; if the tensor was changed on purpose, write the file "
              "again without these metadata");
}

void check_tensors(const SafetensorsFile& file, const std::vector<NamedTensor>& want) {
  constexpr const char* kOtherModel = "use a checkpoint of the same model configuration";
  std::set<std::string> names;
  for (const NamedTensor& tensor : want) {
    require(names.insert(tensor.name).second, "unique names of tensors");
    const std::string wanted = describe(tensor.dtype, tensor.shape);
    const Entry* entry = file.find(tensor.name);
    if (!entry) {
      throw missing(ExitCode::checkpoint, tensor_in(file.path(), tensor.name), wanted, kOtherModel);
    }
    if (entry->dtype != tensor.dtype || entry->shape != tensor.shape) {
      throw Error(ExitCode::checkpoint, tensor_in(file.path(), tensor.name), wanted,
                  describe(entry->dtype, entry->shape), kOtherModel);
    }
  }
  for (const Entry& entry : file.tensors()) {
    if (!names.count(entry.name)) {
      throw Error::fault(ExitCode::checkpoint, tensor_in(file.path(), entry.name),
                         "unexpected tensor, " + describe(entry.dtype, entry.shape), kOtherModel);
    }
  }
}

void read_tensors(const SafetensorsFile& file, const std::vector<NamedTensor>& want) {
  check_tensors(file, want);
  for (const NamedTensor& tensor : want) file.read(*file.find(tensor.name), tensor.data);
}

}  // namespace bamtrain

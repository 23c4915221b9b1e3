#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_format.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/sha256.h"

namespace bamtrain {
namespace {

std::vector<const NamedTensor*> in_file_order(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> order;
  order.reserve(tensors.size());
  for (const NamedTensor& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    if (size_of(a->dtype) != size_of(b->dtype)) return size_of(a->dtype) > size_of(b->dtype);
    return a->name < b->name;
  });
  return order;
}

std::string header_of(const std::vector<const NamedTensor*>& order,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();  // sorts its keys
  if (!metadata.empty()) header[safetensors::kMetadata] = metadata;
  int64_t offset = 0;
  for (const NamedTensor* t : order) {
    require(!t->name.empty() && !header.contains(t->name) && t->name != safetensors::kMetadata,
            "unique names of tensors");
    const auto bytes = safetensors::byte_size(t->dtype, t->shape);
    require(bytes.has_value(), "tensors with sizes below 2^63");
    require(t->data != nullptr || *bytes == 0, "tensors with memory");
    const int64_t end = checked_add(offset, *bytes, "tensor " + t->name);
    header[t->name] = {{"dtype", safetensors::format_name(t->dtype)},
                       {"shape", t->shape},
                       {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    require(false, "names of tensors and metadata in UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  require(static_cast<int64_t>(text.size()) <= safetensors::kMaxHeader, "a header below 100 MB");
  return text;
}

}  // namespace

FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  const std::string header = header_of(order, metadata);
  const uint64_t length = header.size();

  DurableFile file(path);
  file.write(&length, safetensors::kLengthBytes);
  file.write(header.data(), static_cast<int64_t>(header.size()));
  for (const NamedTensor* t : order) {
    file.write(t->data, *safetensors::byte_size(t->dtype, t->shape));
  }
  return file.finish();
}

std::map<std::string, std::string> digests_of(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, std::string> digests;
  for (const NamedTensor& t : tensors) {
    const auto bytes = safetensors::byte_size(t.dtype, t.shape);
    require(bytes.has_value(), "tensors with sizes below 2^63");
    digests[safetensors::kDigest + t.name] =
        sha256_hex({static_cast<const char*>(t.data), static_cast<size_t>(*bytes)});
  }
  return digests;
}

}  // namespace bamtrain

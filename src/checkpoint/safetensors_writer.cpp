#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_format.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/sha256.h"
#include "core/word_sum.h"

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

/// The file up to the first tensor's values: the header and before it its length.
std::string start_of(const std::vector<const NamedTensor*>& order,
                     const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();  // sorts its keys
  if (!metadata.empty()) header[safetensors::kMetadata] = metadata;
  int64_t offset = 0;
  for (const NamedTensor* t : order) {
    require(!t->name.empty() && !header.contains(t->name) && t->name != safetensors::kMetadata,
            "unique names of tensors");
    const auto bytes = safetensors::byte_size(t->dtype, t->shape);
    require(bytes.has_value(), "tensors with sizes below 2^63");
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
  const uint64_t length = text.size();
  std::string start(safetensors::kLengthBytes, '\0');
  std::memcpy(start.data(), &length, start.size());
  return start + text;
}

}  // namespace

FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  const std::string start = start_of(order, metadata);
  DurableFile file(path);
  file.write(start.data(), std::ssize(start));
  for (const NamedTensor* t : order) {
    const int64_t bytes = *safetensors::byte_size(t->dtype, t->shape);
    require(t->data != nullptr || bytes == 0, "tensors with memory");
    file.write(t->data, bytes);
  }
  return file.finish();
}

uint64_t begin_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                           const std::map<std::string, std::string>& metadata) {
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  const std::string start = start_of(order, metadata);
  int64_t bytes = std::ssize(start);
  for (const NamedTensor* t : order) bytes += *safetensors::byte_size(t->dtype, t->shape);
  DurableFile file(path);
  file.write(start.data(), std::ssize(start));
  file.extend(bytes);
  file.finish();
  return word_sum(0, start.data(), std::ssize(start));
}

SafetensorsPart::SafetensorsPart(const std::string& path, const std::vector<NamedTensor>& tensors,
                                 const std::map<std::string, std::string>& metadata)
    : file_(path) {
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  int64_t offset = std::ssize(start_of(order, metadata));
  for (const NamedTensor* t : order) {
    offsets_[t->name] = offset;
    offset += *safetensors::byte_size(t->dtype, t->shape);
  }
}

void SafetensorsPart::write(const std::string& name, int64_t from, const void* data,
                            int64_t bytes) {
  const int64_t offset = offsets_.at(name) + from;
  file_.write(offset, data, bytes);
  sum_ += word_sum(offset, data, bytes);
}

uint64_t SafetensorsPart::finish() {
  file_.finish();
  return sum_;
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

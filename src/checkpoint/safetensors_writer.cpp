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

struct Layout {
  std::string start;  // the file up to the first value: the header after its length
  std::map<std::string, int64_t> offsets;  // of each tensor's first byte in the file
  int64_t bytes = 0;                       // of the file
};

Layout lay_out(const std::vector<const NamedTensor*>& order,
               const std::map<std::string, std::string>& metadata) {
  Layout layout;
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
    layout.offsets[t->name] = offset;
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
  layout.start.resize(safetensors::kLengthBytes);
  std::memcpy(layout.start.data(), &length, sizeof length);
  layout.start += text;
  for (auto& [name, of_tensor] : layout.offsets) of_tensor += std::ssize(layout.start);
  layout.bytes = std::ssize(layout.start) + offset;
  return layout;
}

}  // namespace

FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  const std::string start = lay_out(order, metadata).start;
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
  const Layout layout = lay_out(in_file_order(tensors), metadata);
  const int64_t written = std::ssize(layout.start);
  DurableFile file(path);
  file.write(layout.start.data(), written);
  file.extend(layout.bytes);
  file.finish();
  return word_sum(0, layout.start.data(), written);
}

SafetensorsPart::SafetensorsPart(const std::string& path, const std::vector<NamedTensor>& tensors,
                                 const std::map<std::string, std::string>& metadata)
    : file_(path), offsets_(lay_out(in_file_order(tensors), metadata).offsets) {}

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

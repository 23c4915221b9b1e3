#pragma once
// Shared by the reader and the writer of safetensors files.

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/dtype.h"

namespace bamtrain::safetensors {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie");

constexpr int64_t kLengthBytes = 8;                 // the header's length, before the header
constexpr int64_t kMaxHeader = int64_t{100000000};  // the format's own limit
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kDigest = "sha256:";  // + a tensor's name: metadata key of its digest

constexpr const char* format_name(Dtype t) {
  switch (t) {
    case Dtype::f64:
      return "F64";
    case Dtype::f32:
      return "F32";
    case Dtype::bf16:
      return "BF16";
    case Dtype::i32:
      return "I32";
    case Dtype::f16:
      return "F16";
    case Dtype::u8:
      return "U8";
  }
  return "?";
}

/// Bytes of a tensor; nullopt if a dimension is negative or the product exceeds 2^63 - 1.
inline std::optional<int64_t> byte_size(Dtype dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = static_cast<int64_t>(size_of(dtype));
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace bamtrain::safetensors

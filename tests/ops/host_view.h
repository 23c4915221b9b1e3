#pragma once
// Host views of tensors in any memory.

#include <cstdint>
#include <vector>

#include "core/element.h"

namespace bamtrain::testing {

/// Memory that the host cannot address.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual bool holds(const void* address) const = 0;
  /// upload and download run after all work given to the device, and are complete on return.
  virtual void download(void* host, const void* device, int64_t bytes) const = 0;
  virtual void upload(void* device, const void* host, int64_t bytes) const = 0;
  /// Sets every bit: NaN in any format.
  virtual void fill_ones(void* device, int64_t bytes) const = 0;
};

/// The memory of the device under test; null if all memory is the host's.
inline const DeviceMemory* device_memory = nullptr;

/// A tensor's elements on the host, with the same strides: the tensor itself, or a copy of its
/// memory from the first element to the last.
class HostView {
 public:
  explicit HostView(const Tensor& t) : original_(t), host_(t) {
    if (t.size() == 0 || device_memory == nullptr || !device_memory->holds(t.data)) return;
    int64_t elements = 1;
    for (int d = 0; d < t.rank; ++d) {
      elements += (t.shape[static_cast<size_t>(d)] - 1) * t.stride[static_cast<size_t>(d)];
    }
    bytes_.resize(static_cast<size_t>(elements) * size_of(t.dtype));
    host_.data = bytes_.data();
    device_memory->download(bytes_.data(), t.data, static_cast<int64_t>(bytes_.size()));
  }
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;

  /// For get and put of core/element.h. Valid as long as this object and the original are.
  const Tensor& tensor() const { return host_; }
  /// Copies tensor() to the original.
  void upload() const {
    if (bytes_.empty()) return;
    device_memory->upload(original_.data, bytes_.data(), static_cast<int64_t>(bytes_.size()));
  }

 private:
  Tensor original_, host_;
  std::vector<char> bytes_;
};

}  // namespace bamtrain::testing

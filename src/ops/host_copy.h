#pragma once
// Host-side views of a backend's tensors.

#include <vector>

#include "ops/ops.h"

namespace bamtrain {

/// The elements of a contiguous tensor in host memory: the tensor itself if the backend's memory is
/// host memory, otherwise a copy.
class HostCopy {
 public:
  enum class Contents { downloaded, undefined };

  HostCopy(Backend& backend, const Tensor& original, Contents contents)
      : backend_(backend), original_(original), host_(original) {
    if (backend.memory().on_host()) return;
    bytes_.resize(static_cast<size_t>(original.bytes()));
    host_.data = bytes_.data();
    if (contents == Contents::downloaded) backend.download(bytes_.data(), original);
  }
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  /// Valid for the lifetime of this object and of the original.
  const Tensor& tensor() const { return host_; }
  /// Makes the original equal to tensor().
  void upload() {
    if (!bytes_.empty()) backend_.upload(original_, bytes_.data());
  }

 private:
  Backend& backend_;
  Tensor original_, host_;
  std::vector<char> bytes_;
};

}  // namespace bamtrain

#include "ops/host_backend.h"

#include <cstring>

#include "core/element.h"

namespace bamtrain {

HostBackend::~HostBackend() = default;

MemorySource& HostBackend::memory() { return host_memory(); }

void HostBackend::synchronize() {}

MechanismOps& HostBackend::mechanisms() { return mechanisms_; }

std::unique_ptr<PeerLink> HostBackend::connect(const Peers&) { return nullptr; }

void HostBackend::plan(Arena& arena, const WorkspaceShape& w) { mechanisms_.plan(arena, w); }

void HostBackend::upload(Tensor dst, const void* src) {
  require(dst.contiguous(), "a contiguous tensor to upload to");
  std::memcpy(dst.data, src, static_cast<size_t>(dst.bytes()));
}

void HostBackend::download(void* dst, Tensor src) {
  require(src.contiguous(), "a contiguous tensor to download from");
  std::memcpy(dst, src.data, static_cast<size_t>(src.bytes()));
}

void HostBackend::repeat(int64_t, const std::function<void()>& work) { work(); }

void HostBackend::sum(Tensor total, Tensor x) {
  double s = 0;
  for (int64_t i = 0; i < x.size(); ++i) s += get(x, i);
  *total.ptr<double>() += s;
}

}  // namespace bamtrain

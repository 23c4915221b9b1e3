#include "ops/host_backend.h"

#include <algorithm>
#include <cstring>

#include "core/element.h"
#include "core/parallel.h"

namespace bamtrain {

HostBackend::~HostBackend() = default;

MemorySource& HostBackend::memory() { return host_memory(); }

void HostBackend::synchronize() {}

void HostBackend::run(const MechanismOperation& operation) {
  std::visit([this](const auto& of) { of.on_host(scratch_); }, operation);
}

std::unique_ptr<PeerLink> HostBackend::connect(const Peers&) { return nullptr; }

void HostBackend::plan(Arena& arena, const WorkspaceShape& w) { scratch_.plan(arena, w); }

void HostBackend::upload(Tensor dst, const void* src) {
  require(dst.contiguous(), "a contiguous tensor to upload to");
  std::memcpy(dst.data, src, static_cast<size_t>(dst.bytes()));
}

void HostBackend::download(void* dst, Tensor src) {
  require(src.contiguous(), "a contiguous tensor to download from");
  std::memcpy(dst, src.data, static_cast<size_t>(src.bytes()));
}

void HostBackend::run_captured(int64_t, const std::function<void()>& work) { work(); }

void HostBackend::copy(Tensor dst, Tensor src) {
  require(dst.dtype == src.dtype && dst.rank == src.rank && dst.shape == src.shape,
          "tensors of one type and shape");
  const int inner = dst.rank - 1;
  require(dst.stride[inner] == 1 && src.stride[inner] == 1, "rows without gaps");
  const auto element = static_cast<int64_t>(size_of(dst.dtype));
  const int64_t row = dst.shape[inner] * element;
  const int64_t rows = dst.shape[inner] > 0 ? dst.size() / dst.shape[inner] : 0;
  parallel_ranges(rows, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(row, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t n = begin; n < end; ++n) {
                      int64_t to = 0, from = 0, rest = n;
                      for (int d = inner - 1; d >= 0; --d) {
                        to += rest % dst.shape[d] * dst.stride[d];
                        from += rest % dst.shape[d] * src.stride[d];
                        rest /= dst.shape[d];
                      }
                      std::memcpy(static_cast<char*>(dst.data) + to * element,
                                  static_cast<const char*>(src.data) + from * element,
                                  static_cast<size_t>(row));
                    }
                  });
}

void HostBackend::sum(Tensor total, Tensor x) {
  double s = 0;
  for (int64_t i = 0; i < x.size(); ++i) s += get(x, i);
  *total.ptr<double>() += s;
}

}  // namespace bamtrain

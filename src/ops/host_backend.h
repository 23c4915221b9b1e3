#pragma once
// What backends in host memory share: memory, transfers, and the operations of mechanisms of the
// CPU backend. The reference backend has its own.

#include "ops/host_scratch.h"
#include "ops/ops.h"

namespace bamtrain {

/// Nothing here is inline: the CPU backend is compiled for several instruction sets.
class HostBackend : public Backend {
 public:
  ~HostBackend() override;
  void plan(Arena& arena, const WorkspaceShape& w) override;

  MemorySource& memory() override;
  void upload(Tensor dst, const void* src) override;
  void download(void* dst, Tensor src) override;
  void synchronize() override;
  void run_captured(int64_t key, const std::function<void()>& work) override;
  std::unique_ptr<PeerLink> connect(const Peers& peers) override;
  void copy(Tensor dst, Tensor src) override;
  /// In index order.
  void sum(Tensor total, Tensor x) override;

  void run(const MechanismOperation& operation) override;

 private:
  HostScratch scratch_;
};

}  // namespace bamtrain

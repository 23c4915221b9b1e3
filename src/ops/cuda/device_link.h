#pragma once
// The PeerLink between device memories.

#include "kernels/flat.h"
#include "ops/cuda/messages.h"
#include "ops/cuda/runtime.h"

namespace bamtrain::cuda {

class DeviceLink final : public PeerLink {
 public:
  DeviceLink(const Peers& peers, Stream stream) : messages_(peers, stream) {}

  void start(int slot, std::span<const PeerMessage> messages) override {
    messages_.start(slot, messages);
  }
  void finish(int slot) override { messages_.finish(slot); }
  void add(const Tensor& into, const Tensor& from) override {
    check(kernels::add(into.ptr<float>(), from.ptr<float>(), into.size(), messages_.stream()),
          "add");
  }
  void join() override { messages_.join(); }
  void mark(int n) override { messages_.mark(n); }
  void join(int n) override { messages_.join(n); }
  void all_reduce(const Tensor& data) override {
    messages_.all_reduce(data.ptr<float>(), data.size());
  }

 private:
  Messages messages_;
};

}  // namespace bamtrain::cuda

#pragma once

#include <vector>

#include "checkpoint/safetensors.h"
#include "dist/communicator.h"
#include "train/trainer.h"

namespace bamtrain {

/// All of a tensor (elements) P in host memory: the trainer's own where that is in host memory and
/// has all of it. Other memory is 0 at first.
class HostTensor {
 public:
  HostTensor(const Trainer& trainer, StateTensor t);
  static int64_t bytes(const Trainer& trainer, StateTensor t);
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  std::vector<char> memory_;
};

/// Master weights and optimizer state of all processes in the host memory of rank 0.
class HostState {
 public:
  HostState(Trainer& trainer, const Communicator& comm);
  /// Host memory of rank 0 that it takes.
  static int64_t bytes(const Trainer& trainer);

  /// Copies the trainer's state to rank 0. Collective.
  void gather(Communicator& comm);
  /// Gives all trainers the state of rank 0. Collective.
  void scatter(Communicator& comm);

  /// (elements) P. REQUIRES: rank 0.
  const Tensor& of(StateTensor t) const { return tensors_[static_cast<size_t>(t)].tensor(); }
  std::vector<NamedTensor> model() const;
  std::vector<NamedTensor> optimizer() const;

 private:
  Trainer& trainer_;
  std::vector<HostTensor> tensors_;  // in the order of kStateTensors; on rank 0
};

/// Gives all trainers the tensor of rank 0; null on the others. Collective.
void scatter(StateTensor t, const HostTensor* on_first, Communicator& comm, Trainer& trainer);

}  // namespace bamtrain

#pragma once

#include <array>
#include <vector>

#include "dist/communicator.h"
#include "train/trainer.h"

namespace bamtrain {

/// Master weights and optimizer state of all processes in the host memory of rank 0: the trainer's
/// own memory where that is in host memory and has all of a tensor.
class HostState {
 public:
  HostState(Trainer& trainer, const Communicator& comm);

  /// Copies the trainer's state to rank 0. Collective.
  void gather(Communicator& comm);
  /// Gives all trainers the state of rank 0. Collective.
  void scatter(Communicator& comm);

  /// (elements) P. REQUIRES: rank 0.
  const Tensor& of(StateTensor t) const { return tensors_[static_cast<size_t>(t)]; }
  std::vector<NamedTensor> model() const;
  std::vector<NamedTensor> optimizer() const;

 private:
  Trainer& trainer_;
  std::array<Tensor, kStateTensors.size()> tensors_;
  std::array<std::vector<char>, kStateTensors.size()> memory_;  // of those that it has copies of
};

/// Gives all trainers the tensor (elements) P in host memory of rank 0, which others need not have.
/// Collective.
void scatter(StateTensor t, const Tensor& from_first, Communicator& comm, Trainer& trainer);

}  // namespace bamtrain

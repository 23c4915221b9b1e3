#pragma once

#include <array>
#include <vector>

#include "ops/host_copy.h"
#include "record/run_files.h"
#include "train/trainer.h"

namespace bamtrain {

/// Master weights and optimizer state in host memory.
class HostState {
 public:
  HostState(Trainer& trainer, HostCopy::Contents contents)
      : master_weights_(trainer.backend(), trainer.master_weights(), contents),
        first_(trainer.backend(), trainer.optimizer().first_moments(), contents),
        second_(trainer.backend(), trainer.optimizer().second_moments(), contents) {}

  std::vector<NamedTensor> model(const ParameterLayout& layout) const {
    return model_tensors(layout, master_weights_.tensor());
  }
  std::vector<NamedTensor> optimizer(const ParameterLayout& layout) const {
    return optimizer_tensors(layout, first_.tensor(), second_.tensor());
  }
  std::array<Tensor, 3> tensors() const {
    return {master_weights_.tensor(), first_.tensor(), second_.tensor()};
  }
  void upload() {
    master_weights_.upload();
    first_.upload();
    second_.upload();
  }

 private:
  HostCopy master_weights_, first_, second_;
};

}  // namespace bamtrain

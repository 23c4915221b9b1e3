#pragma once

#include <array>
#include <vector>

#include "ops/host_copy.h"
#include "record/run_files.h"
#include "train/trainer.h"

namespace bamtrain {

/// Masters and moments in host memory.
class HostState {
 public:
  HostState(Trainer& trainer, HostCopy::Contents contents)
      : masters_(trainer.backend(), trainer.masters(), contents),
        first_(trainer.backend(), trainer.optimizer().first_moments(), contents),
        second_(trainer.backend(), trainer.optimizer().second_moments(), contents) {}

  std::vector<NamedTensor> model(const ParameterLayout& layout) const {
    return model_tensors(layout, masters_.tensor());
  }
  std::vector<NamedTensor> optimizer(const ParameterLayout& layout) const {
    return optimizer_tensors(layout, first_.tensor(), second_.tensor());
  }
  std::array<Tensor, 3> tensors() const {
    return {masters_.tensor(), first_.tensor(), second_.tensor()};
  }
  void upload() {
    masters_.upload();
    first_.upload();
    second_.upload();
  }

 private:
  HostCopy masters_, first_, second_;
};

}  // namespace bamtrain

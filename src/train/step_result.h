#pragma once

#include <cstdint>

namespace bamtrain {

/// The results of one step.
struct StepResult {
  int64_t step = 0;  // from 1
  double loss = 0;   // mean over the step's targets
  double lr = 0;
  double norm = 0;                  // global gradient norm, before clipping
  int64_t tokens = 0, targets = 0;  // inputs that were read, without padding; targets that count
  double data_wait = 0;  // seconds spent waiting for tokens, in the process that waited longest
};

}  // namespace bamtrain

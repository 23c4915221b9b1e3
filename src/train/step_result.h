#pragma once

#include <cstdint>

namespace bamtrain {

/// What one step gave.
struct StepResult {
  int64_t step = 0;  // from 1
  double loss = 0;   // mean over the step's targets
  double lr = 0;
  double norm = 0;                  // global gradient norm, before clipping
  int64_t tokens = 0, targets = 0;  // that were read, padding not counted; that count
  double data_wait = 0;  // seconds that it stood for its tokens, in the process that stood longest
};

}  // namespace bamtrain

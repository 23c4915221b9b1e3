#pragma once
// The rule of Backend::clip_factor, for all backends.

#include <cmath>

#include "core/host_device.h"

namespace bamtrain {

BAMTRAIN_HD inline double next_clip_factor(double before, double squared_norm, double clip,
                                           double scale) {
  if (std::isnan(before) || !std::isfinite(squared_norm)) return NAN;
  const double norm = scale * std::sqrt(squared_norm);
  return clip <= 0 || norm <= clip ? scale : scale * (clip / norm);
}

}  // namespace bamtrain

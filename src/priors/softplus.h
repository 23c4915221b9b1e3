#pragma once
// Softplus of gates, and its derivative. Gates are products of the attention's input with a
// mechanism's matrix.

#include <cmath>

#include "core/host_device.h"

namespace bamtrain {

BAMTRAIN_HD inline double softplus(double x) { return fmax(x, 0.0) + log1p(exp(-fabs(x))); }
BAMTRAIN_HD inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }

}  // namespace bamtrain

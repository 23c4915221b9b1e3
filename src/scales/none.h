#pragma once
// No scale.

#include "scales/scale.h"

namespace bamtrain {

ScaleInfo none_scale();

}  // namespace bamtrain

#include "scales/scale.h"

namespace bamtrain {

ScaleInfo none_scale() {
  ScaleInfo s;
  s.name = "none";
  s.formula = "t = 1";
  return s;
}

}  // namespace bamtrain

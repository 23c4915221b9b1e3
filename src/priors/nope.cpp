#include "priors/nope.h"

namespace bamtrain {

PriorInfo nope_prior() {
  PriorInfo p;
  p.name = "nope";
  p.formula = "b = 0";
  return p;
}

}  // namespace bamtrain

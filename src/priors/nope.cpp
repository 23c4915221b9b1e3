// No prior.

#include "priors/prior.h"

namespace bamtrain {

PriorInfo nope_prior() {
  PriorInfo p;
  p.name = "nope";
  p.formula = "b = 0";
  return p;
}

}  // namespace bamtrain

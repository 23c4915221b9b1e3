#include "scales/entropy.h"

namespace bamtrain {

ScaleInfo entropy_scale() {
  ScaleInfo s;
  s.name = "entropy";
  s.formula =
      "z = t_i (s + b), t_i = max(1, a polynomial of the row's entropy at t = 1); evaluation "
      "only";
  s.kind = EntropyKind{};
  s.evaluation_only = true;
  s.default_scale_bias = [](const std::string&) { return true; };
  return s;
}

}  // namespace bamtrain

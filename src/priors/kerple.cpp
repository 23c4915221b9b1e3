#include "priors/kerple.h"

#include <algorithm>

namespace bamtrain {

PriorInfo kerple_prior() {
  PriorInfo p;
  p.name = Kerple<double>::kName;
  p.formula = "b = -r1 log(1 + r2 d), or -r1 d^r2";
  p.options = {{"kernel",
                "logarithmic: -r1 log(1 + r2 d); power: -r1 d^r2, r2 <= 2",
                std::string("logarithmic"),
                {"logarithmic", "power"}},
               decay_option("r1 and r2", true, false)};
  p.parameters = [](const Options& o, const ModelShape& s) {
    MechanismParameter r1 = {"r1", {s.heads}, true, false, "uniform in [0, 2)"};
    MechanismParameter r2 = {"r2", {s.heads}, true, false, "uniform in [0, 1)"};
    r1.minimum = r2.minimum = Kerple<double>::kFloor;
    r1.decays = r2.decays = o.flag("decay");
    if (o.text("kernel") == "power") r2.maximum = Kerple<double>::kMaxPower;
    return MechanismParameters{r1, r2};
  };
  p.initial = [](const Options&, const ModelShape&, const MechanismParameter& q, int64_t,
                 double uniform, double) {
    return std::max(Kerple<double>::kFloor, (q.name == "r1" ? 2 : 1) * uniform);
  };
  p.family = table_family<Kerple>([](const Options& o) -> int {
    return o.text("kernel") == "power" ? Kerple<double>::kPower : Kerple<double>::kLogarithmic;
  });
  return p;
}

}  // namespace bamtrain

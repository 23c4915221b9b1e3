#include "scales/ssmax.h"

namespace bamtrain {

ScaleInfo ssmax_scale() {
  ScaleInfo s;
  s.name = Ssmax<double>::kName;
  s.formula = "t_i = delta + s_h log(n_i + offset)";
  s.options = {
      {"delta", "the constant term: 0 (SSMax) or 1 (ASEntmax)", 0.0, {}, -100, 100},
      {"init", "initial s", 1.0, {}, -100, 100},
      {"init_std", "standard deviation of initial s", 0.0, {}, 0, 10},
      {"offset", "0 (SSMax) or 1 (ASEntmax's code)", 0.0, {}, 0, 1, true},
      scale_bias_option("true with bam, also as dape's base (t then multiplies f too), else "
                        "false"),
      decay_option("s", false)};
  s.parameters = [](const Options& o, const ModelShape& shape) {
    MechanismParameter factor = {"s", {shape.heads}, true, false, "init"};
    factor.decays = o.flag("decay");
    return MechanismParameters{factor};
  };
  s.initial = [](const Options& o, const ModelShape&, const MechanismParameter&, int64_t, double,
                 double normal) { return o.number("init") + o.number("init_std") * normal; };
  s.constants = [](const Options& o, const ModelShape&) -> FormulaConstants {
    return {{o.number("offset"), o.number("delta")}};
  };
  s.kind = length_kind<Ssmax>();
  s.default_scale_bias = [](const std::string& prior) { return prior == "bam"; };
  return s;
}

}  // namespace bamtrain

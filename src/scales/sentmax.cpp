#include "scales/sentmax.h"

namespace bamtrain {

ScaleInfo sentmax_scale() {
  ScaleInfo s;
  s.name = Sentmax<double>::kName;
  s.formula = "t_i = delta + beta_h log(n_i + 1)^gamma_h";
  s.options = {{"delta", "the constant term", 1.0, {}, -100, 100},
               {"gamma", "initial gamma", 0.0, {}, -10, 10},
               {"gamma_std", "standard deviation of initial gamma", 0.1, {}, 0, 10},
               {"train_gamma", "false: gamma stays at its initial value", true},
               scale_bias_option("false"),
               decay_option("beta, and on gamma where it is trained", false)};
  s.parameters = [](const Options& o, const ModelShape& shape) {
    MechanismParameter beta = {"beta", {shape.heads}, true, false, "uniform in [0.1, 1)"};
    MechanismParameter gamma = {"gamma", {shape.heads}, o.flag("train_gamma"), false, "normal"};
    beta.decays = gamma.decays = o.flag("decay");
    return MechanismParameters{beta, gamma};
  };
  s.initial = [](const Options& o, const ModelShape&, const MechanismParameter& p, int64_t,
                 double uniform, double normal) {
    if (p.name == "beta") return 0.1 + 0.9 * uniform;
    return o.number("gamma") + o.number("gamma_std") * normal;
  };
  s.constants = [](const Options& o, const ModelShape&) -> FormulaConstants {
    return {{o.number("delta")}};
  };
  s.kind = length_kind<Sentmax>();
  return s;
}

}  // namespace bamtrain

#include "scales/adaptive.h"

namespace bamtrain {

ScaleInfo adaptive_scale() {
  ScaleInfo s;
  s.name = "adaptive";
  s.formula = "t_i = delta + softplus(x w_b) log(n_i + 1)^(g tanh(x w_g)), x the attention's input";
  s.kind = AdaptiveKind{};
  s.options = {
      {"delta", "the constant term", 1.0, {}, -100, 100},
      {"g", "the largest exponent", 2.0, {}, 0, 10},
      {"bias", "add a trained constant per head to x w_b and x w_g", false},
      scale_bias_option("false"),
      decay_option("beta_weight and gamma_weight, not on beta_bias and gamma_bias", false, true)};
  s.parameters = [](const Options& o, const ModelShape& shape) {
    MechanismParameters out;
    for (const char* name : {"beta_weight", "gamma_weight"}) {
      out.push_back({name, {shape.heads, shape.width}, true, false, "normal, std 0.02"});
      out.back().gate = true;
      out.back().decays = o.flag("decay");
    }
    for (const char* name : {"beta_bias", "gamma_bias"}) {
      if (o.flag("bias")) out.push_back({name, {shape.heads}, true, false, "0"});
    }
    return out;
  };
  s.initial = [](const Options&, const ModelShape&, const MechanismParameter& p, int64_t, double,
                 double normal) { return p.gate ? 0.02 * normal : 0.0; };
  s.constants = [](const Options& o, const ModelShape&) -> FormulaConstants {
    return {{o.number("delta"), o.number("g")}};
  };
  return s;
}

}  // namespace bamtrain

#include "mixes/dape.h"

#include <cmath>

namespace bamtrain {

namespace {

MixForm form_of(const Options& o) {
  const std::string& variant = o.text("variant");
  return variant == "concat"            ? MixForm::concat
         : variant == "concat_residual" ? MixForm::concat_residual
         : variant == "add_residual"    ? MixForm::add_residual
                                        : MixForm::bias_only;
}

int64_t inputs_of(const Options& o, const ModelShape& s) {
  return mix_inputs(s.biased ? form_of(o) : MixForm::add_residual, s.heads);
}

}  // namespace

MixInfo dape_mix() {
  MixInfo m;
  m.name = "dape";
  m.formula =
      "combines x, the scores of all heads at (i, j) before the logit scale, and B, their biases "
      "from `base`, as `variant` says. f = weight2 lrelu(weight1 u + bias1) + bias2, slope 0.01. "
      "Over nope and rope, which have no B: x + f(x). Softmax ignores bias2, which drifts with "
      "rounding in its gradient";
  m.options = {{"variant",
                "concat: x + f([x; B]); concat_residual: x + B + f([x; B]); add_residual: x + B + "
                "f(x + B); bias_only: x + B + f(B)",
                std::string("concat_residual"),
                {"concat", "concat_residual", "add_residual", "bias_only"}},
               {"hidden",
                "width of the network's hidden layer",
                32.0,
                {},
                kDapeLeastHidden,
                kDapeMostHidden,
                true},
               decay_option("weight1 and weight2, not on bias1 and bias2", true, true)};
  m.form = form_of;
  m.bases = {"nope", "alibi", "nape", "kerple", "fire", "rope", "t5", "bam", "cable", "kcable"};
  m.parameters = [](const Options& o, const ModelShape& s) -> MechanismParameters {
    if (!s.biased && form_of(o) == MixForm::bias_only) {
      throw Error(ExitCode::config, "{variant}", "a variant that reads scores: {base} adds no bias",
                  "\"bias_only\"", "choose another variant, or a base with a bias");
    }
    const int64_t H = s.heads, F = static_cast<int64_t>(o.number("hidden"));
    const std::string first = "uniform, 1/sqrt(inputs)", second = "uniform, 1/sqrt(hidden)";
    MechanismParameters out = {{"weight1", {F, inputs_of(o, s)}, true, false, first},
                               {"bias1", {F}, true, false, first},
                               {"weight2", {H, F}, true, false, second},
                               {"bias2", {H}, true, false, second}};
    out[0].decays = out[2].decays = o.flag("decay");
    return out;
  };
  m.initial = [](const Options& o, const ModelShape& s, const MechanismParameter& p, int64_t,
                 double uniform, double) {
    const bool first = p.name.back() == '1';
    const double fan_in = first ? static_cast<double>(inputs_of(o, s)) : o.number("hidden");
    return (2 * uniform - 1) / std::sqrt(fan_in);
  };
  return m;
}

}  // namespace bamtrain

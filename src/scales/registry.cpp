#include "scales/by_length.h"
#include "scales/constant.h"
#include "scales/length_scale.h"
#include "scales/scale.h"
#include "scales/sentmax.h"
#include "scales/ssmax.h"

namespace bamtrain {

namespace {

std::vector<MechanismParameter> no_parameters(const Options&, const PriorShape&) { return {}; }

OptionSpec scale_bias_option(const char* where_auto) {
  return {"scale_bias",
          std::string("z = t (s + b) instead of t s + b; auto: ") + where_auto,
          std::string("auto"),
          {"auto", "true", "false"}};
}

template <template <class> class S>
void set_hooks(ScaleInfo& s) {
  s.kind = ScaleKind::length;
  s.value = LengthScaleHooks<S>::value;
  s.accumulate = LengthScaleHooks<S>::accumulate;
}

ScaleInfo none() {
  ScaleInfo s;
  s.name = "none";
  s.formula = "t = 1";
  s.parameters = no_parameters;
  return s;
}

ScaleInfo ssmax() {
  ScaleInfo s;
  s.name = "ssmax";
  s.formula = "t_i = delta + s_h log(n_i + offset)";
  s.options = {{"delta", "the constant term: 0 (SSMax) or 1 (ASEntmax)", 0.0, {}, -100, 100},
               {"init", "initial s", 1.0, {}, -100, 100},
               {"init_std", "standard deviation around it", 0.0, {}, 0, 10},
               {"offset", "0 (SSMax) or 1 (ASEntmax's code)", 0.0, {}, 0, 1, true},
               scale_bias_option("true with bam, else false"),
               decay_option("s", false)};
  s.parameters = [](const Options& o, const PriorShape& shape) {
    MechanismParameter factor = {"s", {shape.heads}, true, false, "init"};
    factor.decays = o.flag("decay");
    return std::vector<MechanismParameter>{factor};
  };
  s.initial = [](const Options& o, const PriorShape&, const MechanismParameter&, int64_t, double,
                 double normal) { return o.number("init") + o.number("init_std") * normal; };
  s.constants = [](const Options& o, const PriorShape&) -> ScaleConstants {
    return {{o.number("offset"), o.number("delta")}};
  };
  set_hooks<Ssmax>(s);
  s.default_scale_bias = [](const std::string& prior) { return prior == "bam"; };
  return s;
}

ScaleInfo sentmax() {
  ScaleInfo s;
  s.name = "sentmax";
  s.formula = "t_i = delta + beta_h log(n_i + 1)^gamma_h";
  s.options = {{"delta", "the constant term", 1.0, {}, -100, 100},
               {"gamma", "initial gamma", 0.0, {}, -10, 10},
               {"gamma_std", "standard deviation around it", 0.1, {}, 0, 10},
               {"train_gamma", "false: gamma stays at its initial value", true},
               scale_bias_option("false"),
               decay_option("beta, and on gamma where it is trained", false)};
  s.parameters = [](const Options& o, const PriorShape& shape) {
    MechanismParameter beta = {"beta", {shape.heads}, true, false, "uniform in [0.1, 1)"};
    MechanismParameter gamma = {"gamma", {shape.heads}, o.flag("train_gamma"), false, "normal"};
    beta.decays = gamma.decays = o.flag("decay");
    return std::vector<MechanismParameter>{beta, gamma};
  };
  s.initial = [](const Options& o, const PriorShape&, const MechanismParameter& p, int64_t,
                 double uniform, double normal) {
    if (p.name == "beta") return 0.1 + 0.9 * uniform;
    return o.number("gamma") + o.number("gamma_std") * normal;
  };
  s.constants = [](const Options& o, const PriorShape&) -> ScaleConstants {
    return {{o.number("delta")}};
  };
  set_hooks<Sentmax>(s);
  return s;
}

ScaleInfo constant() {
  ScaleInfo s;
  s.name = "constant";
  s.formula = "t_i = t";
  s.options = {{"t", "one over the temperature", 1.0, {}, 0, 1e4}, scale_bias_option("false")};
  s.parameters = no_parameters;
  s.constants = [](const Options& o, const PriorShape&) -> ScaleConstants {
    return {{o.number("t")}};
  };
  set_hooks<ConstantScale>(s);
  return s;
}

/// Entries per head of by_length's table.
int64_t lengths_of(const Options& o, const PriorShape& shape) {
  const auto n = static_cast<int64_t>(o.number("lengths"));
  return n ? n : shape.sequence_length;
}

ScaleInfo by_length() {
  ScaleInfo s;
  s.name = "by_length";
  s.formula = "t_i = t[h][n_i - 1], learned";
  s.options = {{"lengths", "entries per head; 0: the training length", 0.0, {}, 0.0, 1e9, true},
               scale_bias_option("false"),
               decay_option("t", false)};
  s.parameters = [](const Options& o, const PriorShape& shape) {
    const int64_t lengths = lengths_of(o, shape);
    if (lengths < shape.sequence_length) {
      throw Error(ExitCode::config, "model.attention.scale.lengths",
                  "at least data.sequence_length = " + std::to_string(shape.sequence_length),
                  std::to_string(lengths), "raise it, or set it to 0");
    }
    MechanismParameter table = {"t", {shape.heads, lengths}, true, false, "1"};
    table.decays = o.flag("decay");
    return std::vector<MechanismParameter>{table};
  };
  s.initial = [](const Options&, const PriorShape&, const MechanismParameter&, int64_t, double,
                 double) { return 1.0; };
  s.constants = [](const Options& o, const PriorShape& shape) -> ScaleConstants {
    return {{static_cast<double>(lengths_of(o, shape))}};
  };
  s.kind = ScaleKind::length;
  s.value = ByLengthScale::value;
  s.accumulate = ByLengthScale::accumulate;
  s.longest = ByLengthScale::longest;
  return s;
}

ScaleInfo adaptive() {
  ScaleInfo s;
  s.name = "adaptive";
  s.formula = "t_i = delta + softplus(x w_b) log(n_i + 1)^(g tanh(x w_g)), x the attention's input";
  s.kind = ScaleKind::adaptive;
  s.options = {
      {"delta", "the constant term", 1.0, {}, -100, 100},
      {"g", "the largest exponent", 2.0, {}, 0, 10},
      {"bias", "a trained constant per head beside x w_b and x w_g", false},
      scale_bias_option("false"),
      decay_option("beta_weight and gamma_weight, not on beta_bias and gamma_bias", false, true)};
  s.parameters = [](const Options& o, const PriorShape& shape) {
    std::vector<MechanismParameter> out;
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
  s.initial = [](const Options&, const PriorShape&, const MechanismParameter& p, int64_t, double,
                 double normal) { return p.gate ? 0.02 * normal : 0.0; };
  s.constants = [](const Options& o, const PriorShape&) -> ScaleConstants {
    return {{o.number("delta"), o.number("g")}};
  };
  return s;
}

ScaleInfo entropy() {
  ScaleInfo s;
  s.name = "entropy";
  s.formula =
      "z = t_i (s + b), t_i = max(1, a polynomial of the entropy of the row without it); for "
      "evaluation";
  s.kind = ScaleKind::entropy;
  s.evaluation_only = true;
  s.parameters = no_parameters;
  s.default_scale_bias = [](const std::string&) { return true; };
  return s;
}

}  // namespace

const std::vector<ScaleInfo>& all_scales() {
  static const std::vector<ScaleInfo> scales = {none(),      ssmax(),    sentmax(), constant(),
                                                by_length(), adaptive(), entropy()};
  return scales;
}

const ScaleInfo* find_scale(const std::string& name) {
  for (const ScaleInfo& s : all_scales()) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

}  // namespace bamtrain

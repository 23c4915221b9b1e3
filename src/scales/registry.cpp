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
  s.formula = "t_i = s_h log(n_i + offset)";
  s.options = {{"init", "initial s", 1.0, {}, -100, 100},
               {"init_std", "standard deviation around it", 0.0, {}, 0, 10},
               {"offset", "0 (SSMax) or 1 (ASEntmax's code)", 0.0, {}, 0, 1, true},
               scale_bias_option("true with bam, else false")};
  s.parameters = [](const Options&, const PriorShape& shape) {
    return std::vector<MechanismParameter>{{"s", {shape.heads}, true, false, "init"}};
  };
  s.initial = [](const Options& o, const PriorShape&, const MechanismParameter&, int64_t, double,
                 double normal) { return o.number("init") + o.number("init_std") * normal; };
  s.constants = [](const Options& o, const PriorShape&) -> ScaleConstants {
    return {{o.number("offset")}};
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
               scale_bias_option("false")};
  s.parameters = [](const Options& o, const PriorShape& shape) {
    return std::vector<MechanismParameter>{
        {"beta", {shape.heads}, true, false, "uniform in [0.1, 1)"},
        {"gamma", {shape.heads}, o.flag("train_gamma"), false, "normal"}};
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
               scale_bias_option("false")};
  s.parameters = [](const Options& o, const PriorShape& shape) {
    const int64_t lengths = lengths_of(o, shape);
    if (lengths < shape.sequence_length) {
      throw Error(ExitCode::config, "model.attention.scale.lengths",
                  "at least data.sequence_length = " + std::to_string(shape.sequence_length),
                  std::to_string(lengths), "raise it, or set it to 0");
    }
    return std::vector<MechanismParameter>{{"t", {shape.heads, lengths}, true, false, "1"}};
  };
  s.initial = [](const Options&, const PriorShape&, const MechanismParameter&, int64_t, double,
                 double) { return 1.0; };
  s.constants = [](const Options& o, const PriorShape& shape) -> ScaleConstants {
    return {{static_cast<double>(lengths_of(o, shape))}};
  };
  s.value = ByLengthScale::value;
  s.accumulate = ByLengthScale::accumulate;
  s.longest = ByLengthScale::longest;
  return s;
}

}  // namespace

const std::vector<ScaleInfo>& all_scales() {
  static const std::vector<ScaleInfo> scales = {none(), ssmax(), sentmax(), constant(),
                                                by_length()};
  return scales;
}

const ScaleInfo* find_scale(const std::string& name) {
  for (const ScaleInfo& s : all_scales()) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

}  // namespace bamtrain

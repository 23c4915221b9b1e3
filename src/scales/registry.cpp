#include "scales/scale.h"
#include "scales/ssmax.h"

namespace bamtrain {

namespace {

ScaleInfo none() {
  ScaleInfo s;
  s.name = "none";
  s.formula = "t = 1";
  s.parameters = [](const Options&, const PriorShape&) {
    return std::vector<MechanismParameter>{};
  };
  s.default_scale_bias = [](const std::string&) { return false; };
  return s;
}

Ssmax<double> ssmax_head(const Options& o, const double* const* theta, int64_t h) {
  return {theta[0][h], o.number("offset")};
}

ScaleInfo ssmax() {
  ScaleInfo s;
  s.name = "ssmax";
  s.formula = "t_i = s_h log(n_i + offset)";
  s.options = {{"init", "initial s", 1.0, {}, -100, 100},
               {"init_std", "standard deviation around it", 0.0, {}, 0, 10},
               {"offset", "0 (SSMax) or 1 (ASEntmax's code)", 0.0, {}, 0, 1, true},
               {"scale_bias",
                "z = t (s + b) instead of t s + b; auto: true with bam, else false",
                std::string("auto"),
                {"auto", "true", "false"}}};
  s.parameters = [](const Options&, const PriorShape& shape) {
    return std::vector<MechanismParameter>{{"s", {shape.heads}, true, false, "init"}};
  };
  s.initial = [](const Options& o, const PriorShape&, const MechanismParameter&, int64_t, double,
                 double normal) { return o.number("init") + o.number("init_std") * normal; };
  s.value = [](const Options& o, const double* const* theta, int64_t h, int64_t n) {
    return ssmax_head(o, theta, h).value(n);
  };
  s.accumulate = [](const Options& o, const double* const* theta, int64_t h, int64_t n, double dt,
                    double* const* dtheta) {
    ssmax_head(o, theta, h).accumulate(dt, n, &dtheta[0][h]);
  };
  s.default_scale_bias = [](const std::string& prior) { return prior == "bam"; };
  return s;
}

}  // namespace

const std::vector<ScaleInfo>& all_scales() {
  static const std::vector<ScaleInfo> scales = {none(), ssmax()};
  return scales;
}

const ScaleInfo* find_scale(const std::string& name) {
  for (const ScaleInfo& s : all_scales()) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

}  // namespace bamtrain

// Cable and KCable: the bias is a function of S_j - S_i, where S is the running sum of
// softplus(W x + w0) per head (priors/softplus.h).

#include <cmath>

#include "priors/prior.h"

namespace bamtrain {

namespace {

double content_scale(const Options& o, const ModelShape& s) {
  const std::string& scale = o.text("content_scale");
  if (scale == "1/sqrt(C)") return 1 / std::sqrt(static_cast<double>(s.width));
  return scale == "1" ? 1.0 : 0.0;
}

PriorInfo summed(const char* name, Formula bias, const char* formula) {
  PriorInfo p;
  p.name = name;
  p.formula = std::string(formula) + ", S the running sum of softplus(W x + w0)";
  p.options = {{"content_scale",
                "s = content_scale <q, k>: 1/sqrt(D) (the paper), 1 (its published module) or "
                "1/sqrt(C), C the width (its published notebook)",
                std::string("1/sqrt(D)"),
                {"1/sqrt(D)", "1", "1/sqrt(C)"}},
               decay_option("weight, the gates' matrix, not on their bias", true, true)};
  p.parameters = [](const Options& o, const ModelShape& s) {
    MechanismParameter weight = {"weight", {s.heads, s.width}, true, false, "normal, std 0.02"};
    weight.gate = true;
    weight.decays = o.flag("decay");
    return MechanismParameters{weight, {"bias", {s.heads}, true, false, "0"}};
  };
  p.initial = [](const Options&, const ModelShape&, const MechanismParameter& q, int64_t, double,
                 double normal) { return q.gate ? 0.02 * normal : 0.0; };
  p.family = SumsFamily{bias, content_scale};
  return p;
}

}  // namespace

PriorInfo cable_prior() { return summed("cable", Formula::difference, "b = S_j - S_i"); }
PriorInfo kcable_prior() {
  return summed("kcable", Formula::log_square, "b = -log(1 + (S_i - S_j)^2)");
}

}  // namespace bamtrain

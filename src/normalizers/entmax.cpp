#include "normalizers/entmax.h"

#include <cmath>

#include "normalizers/normalizer.h"

namespace bamtrain {

namespace {

/// The inverse of 1 + softplus, rounded to fp32 so that initial values lie within the limits.
double theta_of(double alpha) {
  const double a = alpha - 1;
  return static_cast<float>(a + std::log(-std::expm1(-a)));
}

}  // namespace

NormalizerInfo Entmax::info() {
  NormalizerInfo n;
  n.name = "entmax";
  n.formula =
      "p_ij = [(alpha - 1) z_ij - tau_i]_+^(1/(alpha - 1)), tau_i such that a row sums to 1; alpha "
      "2: sparsemax";
  n.options = {{"alpha",
                "the nearer to 1, the nearer to softmax. Above 2, gradients are approximate where "
                "weights are small",
                1.5,
                {},
                Entmax::kLeastAlpha,
                Entmax::kMostAlpha},
               {"learned", "train one alpha per head, starting from alpha", false},
               decay_option("alpha, where it is learned", false)};
  n.parameters = [](const Options& o, const ModelShape& s) {
    MechanismParameter alpha = {"alpha", {s.heads}, true, false, "log(exp(alpha - 1) - 1)"};
    alpha.minimum = theta_of(Entmax::kLeastAlpha);
    alpha.maximum = theta_of(Entmax::kMostAlpha);
    alpha.decays = o.flag("decay");
    if (alpha.decays && !o.flag("learned")) {
      throw Error(ExitCode::config, "{decay}", "false where alpha is a constant",
                  "true, and {learned} is false", "set {learned} to true, or remove {decay}");
    }
    return o.flag("learned") ? MechanismParameters{alpha} : MechanismParameters();
  };
  n.initial = [](const Options& o, const ModelShape&, const MechanismParameter&, int64_t, double,
                 double) { return theta_of(o.number("alpha")); };
  n.form = [](const Options& o) -> NormalizerForm {
    return {.alpha = o.number("alpha"), .learned = o.flag("learned")};
  };
  n.examples = {{{"alpha", 1.5}},
                {{"alpha", 2.0}},
                {{"alpha", 1.7}},
                {{"alpha", 1.2}, {"learned", true}},
                {{"alpha", 3.0}}};
  return n;
}

}  // namespace bamtrain

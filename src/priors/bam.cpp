#include "priors/bam.h"

#include "priors/alibi.h"

namespace bamtrain {

PriorInfo bam_prior() {
  PriorInfo p;
  p.name = Bam<double>::kName;
  p.formula =
      "b = -exp(theta_alpha) (|j - i - (exp(theta_mu) - exp(-theta_mu))| + 1e-5)^theta_beta, at "
      "least -1e4. A clamped b has no gradient, and its key no weight if another logit is well "
      "above it. The exception is a scale that multiplies b by t below about 0.002 (t b above -20)";
  p.options = {
      {"init",
       "initial values: uniform (all zero), laplace (ALiBi's slopes), linear (theta_beta from 0 to "
       "1 over the heads), normal (theta_alpha, theta_beta ~ N(0, 1))",
       std::string("uniform"),
       {"uniform", "laplace", "linear", "normal"}},
      {"train",
       "which parameters are trained; the others stay at their initial values",
       StringList{"theta_alpha", "theta_beta"},
       {"theta_alpha", "theta_beta", "theta_mu"}},
      {"share", "one set of parameters for all layers instead of one per layer", false},
      decay_option("theta_alpha, theta_beta and theta_mu, where trained", false),
  };
  p.parameters = [](const Options& o, const ModelShape& s) {
    MechanismParameters out;
    for (const char* name : {"theta_alpha", "theta_beta", "theta_mu"}) {
      out.push_back({name, {s.heads}, o.lists("train", name), o.flag("share"), o.text("init")});
      out.back().decays = o.flag("decay");
    }
    return out;
  };
  p.initial = [](const Options&, const ModelShape& s, const MechanismParameter& q, int64_t h,
                 double, double normal) {
    if (q.name == "theta_mu") return 0.0;
    const bool alpha = q.name == "theta_alpha";
    if (q.init == "laplace") return alpha ? std::log(alibi_slope(h, s.heads)) : 1.0;
    if (q.init == "linear") {
      if (alpha || s.heads == 1) return 0.0;
      return static_cast<double>(h) / static_cast<double>(s.heads - 1);
    }
    if (q.init == "normal") return normal;
    return 0.0;
  };
  p.family = table_family<Bam>();
  return p;
}

}  // namespace bamtrain

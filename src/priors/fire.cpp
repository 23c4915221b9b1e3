#include "priors/fire.h"

#include "priors/prior.h"

namespace bamtrain {

PriorInfo fire_prior() {
  PriorInfo p;
  p.name = "fire";
  p.formula =
      "b = f(psi(d) / psi(max(i, |m| L0))), psi(x) = log(|c| x + 1), f an MLP with 32 hidden "
      "ReLUs. Softmax ignores its output bias b2, which drifts with rounding in its gradient";
  p.options = {
      length_option("threshold_length", "L0; 0: that of init_from, else the training length",
                    [](const Options&, int64_t T, int64_t) { return static_cast<double>(T); }),
      {"negative_slope",
       "slope of hidden units below 0; 0: ReLU; DAPE's published code: 0.01",
       0.0,
       {},
       0.0,
       1.0},
      decay_option("c, m, w1 and w2, not on b1 and b2", true, false)};
  p.parameters = [](const Options& o, const ModelShape& s) {
    constexpr int64_t F = kFireHidden;
    MechanismParameters out = {{"c", {1}, true, false, "0.1"},
                               {"m", {1}, true, false, "1"},
                               {"w1", {F}, true, false, "uniform in [-1, 1)"},
                               {"b1", {F}, true, false, "uniform in [-1, 1)"},
                               {"w2", {s.heads, F}, true, false, "uniform, 1/sqrt(32)"},
                               {"b2", {s.heads}, true, false, "uniform, 1/sqrt(32)"}};
    for (MechanismParameter& q : out) {
      q.decays = o.flag("decay") && q.name != "b1" && q.name != "b2";
    }
    return out;
  };
  p.initial = [](const Options&, const ModelShape&, const MechanismParameter& q, int64_t,
                 double uniform, double) {
    if (q.name == "c") return 0.1;
    if (q.name == "m") return 1.0;
    const double bound = q.name.back() == '1' ? 1 : 1 / std::sqrt(1.0 * kFireHidden);
    return bound * (2 * uniform - 1);
  };
  p.family = FireFamily{[](const Options& o, int64_t T) {
    const double length = o.number("threshold_length");
    return length > 0 ? length : static_cast<double>(T);
  }};
  std::get<FireFamily>(p.family).negative_slope = [](const Options& o) {
    return o.number("negative_slope");
  };
  return p;
}

}  // namespace bamtrain

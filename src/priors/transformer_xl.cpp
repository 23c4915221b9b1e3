// Transformer-XL's relative positions (Dai et al. 2019; DAPE, appendix F): b = (<q + w, r_d> +
// <u, k>) / sqrt(D), where r_d is the head's part of w_r sinusoid(d). Distances are exact integers
// of any size. For the attention side see ops/mechanisms/transformer_xl.h.

#include <cmath>

#include "priors/prior.h"
#include "priors/sinusoidal.h"

namespace bamtrain {

PriorInfo transformer_xl_prior() {
  PriorInfo p;
  p.name = "transformer_xl";
  p.formula =
      "b = (<q_i + w, r_d> + <u, k_j>) / sqrt(D), d = i - j, r_d = w_r sinusoid(d). Channels 2c "
      "and 2c + 1 of sinusoid are sin and cos of d / 10000^(2c/C)";
  p.options = {decay_option("w_r, u and w", true, true)};
  p.randomized = Randomized::distances;
  add_randomized_options(&p.options, *p.randomized);
  p.parameters = [](const Options& o, const ModelShape& s) {
    check_randomized(o, s.sequence_length);
    MechanismParameters out = {
        {"w_r", {s.heads * s.head_dim, s.width}, true, false, "uniform, 1/sqrt(C)"},
        {"u", {s.heads, s.head_dim}, true, false, "normal, std 0.02"},
        {"w", {s.heads, s.head_dim}, true, false, "normal, std 0.02"}};
    for (MechanismParameter& q : out) q.decays = o.flag("decay");
    return out;
  };
  p.initial = [](const Options&, const ModelShape& s, const MechanismParameter& q, int64_t,
                 double uniform, double normal) {
    if (q.name != "w_r") return 0.02 * normal;
    return (2 * uniform - 1) / std::sqrt(static_cast<double>(s.width));
  };
  p.family = TransformerXlFamily{[](int64_t distance, int64_t c, int64_t C) {
    return sinusoidal_embedding(true, distance, c, C);
  }};
  return p;
}

}  // namespace bamtrain

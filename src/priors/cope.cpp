// CoPE, contextual position encoding (Golovneva et al. 2024): the bias of ops/mechanisms/cope.h.

#include "priors/prior.h"

namespace bamtrain {

PriorInfo cope_prior() {
  PriorInfo p;
  p.name = "cope";
  p.causal_only = true;
  p.formula =
      "b = <q_i, E[p_ij]>, linearly interpolated between the columns of E, p_ij = min(sum over k = "
      "j .. i of sigmoid(s_ik), positions - 1)";
  p.options = {{"positions",
                "columns of E, whatever the length; at most 1,024 on a GPU",
                64.0,
                {},
                2.0,
                65536.0,
                true},
               decay_option("positions, the matrix E", true, true)};
  p.parameters = [](const Options& o, const ModelShape& s) {
    const auto n = static_cast<int64_t>(o.number("positions"));
    MechanismParameter E = {"positions", {s.head_dim, n}, true, false, "0"};
    E.decays = o.flag("decay");
    return MechanismParameters{E};
  };
  p.initial = [](const Options&, const ModelShape&, const MechanismParameter&, int64_t, double,
                 double) { return 0.0; };
  p.family = ContextualFamily{};
  return p;
}

}  // namespace bamtrain

#include "priors/alibi.h"

namespace bamtrain {

PriorInfo alibi_prior() {
  PriorInfo p;
  p.name = "alibi";
  p.formula = "b = -m_h d, m_h = 2^(-8h/H)";
  p.randomized = Randomized::distances;
  add_randomized_options(&p.options, *p.randomized);
  p.parameters = [](const Options& o, const ModelShape& s) -> MechanismParameters {
    check_randomized(o, s.sequence_length);
    return {};
  };
  p.family = table_family<Alibi>();
  return p;
}

}  // namespace bamtrain

#include "priors/registry.h"

namespace bamtrain {

// Of NAME.cpp each.
PriorInfo nope_prior();
PriorInfo alibi_prior();
PriorInfo nape_prior();
PriorInfo bam_prior();
PriorInfo kerple_prior();
PriorInfo t5_prior();
PriorInfo fire_prior();
PriorInfo cable_prior();
PriorInfo kcable_prior();
PriorInfo transformer_xl_prior();
PriorInfo cope_prior();
PriorInfo rope_prior();
PriorInfo rope_local_prior();
PriorInfo sinusoidal_prior();
PriorInfo learned_prior();

const std::vector<PriorInfo>& all_priors() {
  static const std::vector<PriorInfo> priors = {
      nope_prior(), alibi_prior(), nape_prior(),       bam_prior(),        kerple_prior(),
      t5_prior(),   fire_prior(),  cable_prior(),      kcable_prior(),     transformer_xl_prior(),
      cope_prior(), rope_prior(),  rope_local_prior(), sinusoidal_prior(), learned_prior(),
  };
  return priors;
}

const PriorInfo* find_prior(const std::string& name) { return find_mechanism(all_priors(), name); }

}  // namespace bamtrain

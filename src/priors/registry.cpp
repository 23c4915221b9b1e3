#include "priors/registry.h"

#include "priors/cable.h"
#include "priors/fire.h"
#include "priors/learned.h"
#include "priors/nope.h"
#include "priors/rope.h"
#include "priors/sinusoidal.h"
#include "priors/table_priors.h"

namespace bamtrain {

const std::vector<PriorInfo>& all_priors() {
#define BAMTRAIN_ENTRY(name, formula) name##_prior(),
  // clang-format off
  static const std::vector<PriorInfo> priors = {
      nope_prior(),
      BAMTRAIN_TABLE_PRIORS(BAMTRAIN_ENTRY)
      fire_prior(),
      cable_prior(),
      kcable_prior(),
      rope_prior(),
      rope_local_prior(),
      sinusoidal_prior(),
      learned_prior(),
  };
  // clang-format on
#undef BAMTRAIN_ENTRY
  return priors;
}

const PriorInfo* find_prior(const std::string& name) { return find_mechanism(all_priors(), name); }

}  // namespace bamtrain

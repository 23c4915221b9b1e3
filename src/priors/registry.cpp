#include "priors/registry.h"

#include "priors/nope.h"
#include "priors/table_priors.h"

namespace bamtrain {

#define BAMTRAIN_DECLARATION(name) PriorInfo name##_prior();
BAMTRAIN_OTHER_PRIORS(BAMTRAIN_DECLARATION)
#undef BAMTRAIN_DECLARATION

const std::vector<PriorInfo>& all_priors() {
#define BAMTRAIN_ENTRY(name, ...) name##_prior(),
  // clang-format off
  static const std::vector<PriorInfo> priors = {
      nope_prior(),
      BAMTRAIN_TABLE_PRIORS(BAMTRAIN_ENTRY)
      BAMTRAIN_OTHER_PRIORS(BAMTRAIN_ENTRY)
  };
  // clang-format on
#undef BAMTRAIN_ENTRY
  return priors;
}

const PriorInfo* find_prior(const std::string& name) { return find_mechanism(all_priors(), name); }

}  // namespace bamtrain

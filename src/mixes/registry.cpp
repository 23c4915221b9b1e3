#include "mixes/registry.h"

#include "mixes/dape.h"

namespace bamtrain {

const std::vector<MixInfo>& all_mixes() {
  static const std::vector<MixInfo> mixes = {dape_mix()};
  return mixes;
}

const MixInfo* find_mix(const std::string& name) { return find_mechanism(all_mixes(), name); }

}  // namespace bamtrain

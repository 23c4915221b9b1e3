#include "scales/registry.h"

namespace bamtrain {

const std::vector<ScaleInfo>& all_scales() {
  static const std::vector<ScaleInfo> scales = {
      none_scale(),      ssmax_scale(),    sentmax_scale(), constant_scale(),
      by_length_scale(), adaptive_scale(), entropy_scale(),
  };
  return scales;
}

const ScaleInfo* find_scale(const std::string& name) { return find_mechanism(all_scales(), name); }

}  // namespace bamtrain

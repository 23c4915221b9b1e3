#include "scales/registry.h"

namespace bamtrain {

// Of NAME.cpp each.
ScaleInfo none_scale();
ScaleInfo ssmax_scale();
ScaleInfo sentmax_scale();
ScaleInfo constant_scale();
ScaleInfo by_length_scale();
ScaleInfo adaptive_scale();
ScaleInfo entropy_scale();

const std::vector<ScaleInfo>& all_scales() {
  static const std::vector<ScaleInfo> scales = {
      none_scale(),      ssmax_scale(),    sentmax_scale(), constant_scale(),
      by_length_scale(), adaptive_scale(), entropy_scale(),
  };
  return scales;
}

const ScaleInfo* find_scale(const std::string& name) { return find_mechanism(all_scales(), name); }

}  // namespace bamtrain

#include "scales/registry.h"

#include "scales/adaptive.h"
#include "scales/by_length.h"
#include "scales/entropy.h"
#include "scales/length_scales.h"
#include "scales/none.h"

namespace bamtrain {

const std::vector<ScaleInfo>& all_scales() {
#define BAMTRAIN_ENTRY(name, formula) name##_scale(),
  // clang-format off
  static const std::vector<ScaleInfo> scales = {
      none_scale(),
      BAMTRAIN_LENGTH_SCALES(BAMTRAIN_ENTRY)
      by_length_scale(),
      adaptive_scale(),
      entropy_scale(),
  };
  // clang-format on
#undef BAMTRAIN_ENTRY
  return scales;
}

const ScaleInfo* find_scale(const std::string& name) { return find_mechanism(all_scales(), name); }

}  // namespace bamtrain

#include "normalizers/registry.h"

#include "normalizers/entmax.h"
#include "normalizers/softmax.h"
#include "normalizers/stick_breaking.h"
#include "normalizers/topk.h"

namespace bamtrain {

const std::vector<NormalizerInfo>& all_normalizers() {
  static const std::vector<NormalizerInfo> normalizers = {
      softmax_normalizer(), entmax_normalizer(), topk_normalizer(), stick_breaking_normalizer()};
  return normalizers;
}

const NormalizerInfo* find_normalizer(const std::string& name) {
  return find_mechanism(all_normalizers(), name);
}

}  // namespace bamtrain

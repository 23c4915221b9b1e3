#include "normalizers/registry.h"

namespace bamtrain {

namespace {

NormalizerInfo of_kind(NormalizerKind kind, NormalizerInfo info) {
  info.kind = kind;
  return info;
}

}  // namespace

const std::vector<NormalizerInfo>& all_normalizers() {
#define BAMTRAIN_ENTRY(name) of_kind(NormalizerKind::name, name##_normalizer()),
  // clang-format off
  static const std::vector<NormalizerInfo> normalizers = {
      BAMTRAIN_NORMALIZERS(BAMTRAIN_ENTRY)
  };
  // clang-format on
#undef BAMTRAIN_ENTRY
  return normalizers;
}

const NormalizerInfo* find_normalizer(const std::string& name) {
  return find_mechanism(all_normalizers(), name);
}

}  // namespace bamtrain

#include "normalizers/registry.h"

namespace bamtrain {

namespace {

template <class... N>
std::vector<NormalizerInfo> infos_of(TypeList<N...>) {
  std::vector<NormalizerInfo> all = {N::info()...};
  for (size_t n = 0; n < all.size(); ++n) all[n].kind = static_cast<NormalizerKind>(n);
  return all;
}

}  // namespace

const std::vector<NormalizerInfo>& all_normalizers() {
  static const std::vector<NormalizerInfo> normalizers = infos_of(Normalizers());
  return normalizers;
}

const NormalizerInfo* find_normalizer(const std::string& name) {
  return find_mechanism(all_normalizers(), name);
}

}  // namespace bamtrain

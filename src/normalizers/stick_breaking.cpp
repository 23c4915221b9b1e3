#include "normalizers/stick_breaking.h"

#include "normalizers/normalizer.h"

namespace bamtrain {

NormalizerInfo StickBreaking::info() {
  NormalizerInfo n;
  n.name = "stick_breaking";
  n.formula =
      "p_ij = sigmoid(z_ij) prod_{j < k < i} (1 - sigmoid(z_ik)), j < i; only with scale none";
  return n;
}

}  // namespace bamtrain

#include "normalizers/softmax.h"

#include "normalizers/normalizer.h"

namespace bamtrain {

NormalizerInfo Softmax::info() {
  NormalizerInfo n;
  n.name = "softmax";
  n.formula = "p_ij = exp(z_ij) / sum_k exp(z_ik)";
  return n;
}

}  // namespace bamtrain

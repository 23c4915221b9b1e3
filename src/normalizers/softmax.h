#pragma once
// p_ij = exp(z_ij) / sum_k exp(z_ik).

namespace bamtrain {

struct NormalizerInfo;
NormalizerInfo softmax_normalizer();

}  // namespace bamtrain

#pragma once
// Normalizers in fp64, one row at a time, as the mathematics is written. Thresholds and adjoints
// are not computed the way a fast backend does. See src/normalizers/ for the formulas.

#include <vector>

#include "ops/attention.h"

namespace bamtrain {

/// The weights of a row's visible keys, the number of nonzero ones, and the row's values of
/// AttentionSaved; `last` is relative to the row's first key.
struct RowWeights {
  std::vector<double> p;
  int64_t nonzero_keys = 0;
  double level = 0, threshold = 0;
  int64_t last = 0;
};
/// z: the logits of the visible keys of a row of head h; the last is the row's own key.
RowWeights reference_weights(const Attention& a, int64_t h, const std::vector<double>& z);

struct RowAdjoint {
  std::vector<double> dz;
  double dalpha = 0;
};
/// The adjoint at dp, the gradient with respect to the weights `w`.
RowAdjoint reference_adjoint(const Attention& a, int64_t h, const std::vector<double>& z,
                             const RowWeights& w, const std::vector<double>& dp);

}  // namespace bamtrain

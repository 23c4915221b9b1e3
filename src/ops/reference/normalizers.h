#pragma once
// Normalizers in fp64, one row at a time, as the mathematics is written: no threshold, and no
// adjoint, is found in the way of a fast backend. See src/normalizers/ for the formulas.

#include <vector>

#include "ops/attention.h"

namespace bamtrain {

/// The weights of a row's visible keys, how many of them have any, and its numbers of
/// AttentionSaved; `last` counts from the row's first key.
struct RowWeights {
  std::vector<double> p;
  int64_t nonzero_keys = 0;
  double level = 0, threshold = 0;
  int64_t last = 0;
};
/// z: the logits of the visible keys of a row of head h, the last of them its own.
RowWeights reference_weights(const Attention& a, int64_t h, const std::vector<double>& z);

struct RowAdjoint {
  std::vector<double> dz;
  double dalpha = 0;
};
/// At dp, the gradient with respect to the weights `w`.
RowAdjoint reference_adjoint(const Attention& a, int64_t h, const std::vector<double>& z,
                             const RowWeights& w, const std::vector<double>& dp);

}  // namespace bamtrain

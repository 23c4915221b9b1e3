#pragma once
// The probe of representational collapse (ASEntmax, appendix D.2): of a sequence whose last token
// differs from those before it, how far its last state after six layers is from that of the same
// sequence with the last token repeated. Tokens have one channel; queries, keys and values are the
// states themselves, which attention's output is added to:
//
//   v_1 .. v_{n-1} = b / sqrt(1.2),  v_n = sqrt(1.2),  z_ij = v_i v_j,  v_i += sum_j p_ij v_j

#include <cstdint>
#include <vector>

#include "ops/attention.h"

namespace bamtrain {

enum class CollapsePrefix { constant, random };  // b = 1; b uniform in [0, 1), seeded

struct CollapseGap {
  int64_t n = 0;   // tokens before one is repeated
  double gap = 0;  // |v_n - v*_{n+1}| after the last layer
};

inline constexpr int kCollapseLayers = 6;
/// The lengths of the probe: 128, 256, ... as far as the rows that have to be formed are few, which
/// all rows of a constant prefix are that have the same weights.
inline constexpr int64_t kFirstCollapse = 128, kLastCollapse = 16384, kLastOfAllRows = 512;

/// For a normalizer with one alpha. Causal, in fp64.
std::vector<CollapseGap> collapse_gaps(const NormalizerForm& normalizer, CollapsePrefix prefix);

}  // namespace bamtrain

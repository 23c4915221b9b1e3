#pragma once
// Probe of representational collapse (ASEntmax, appendix D.2). The last token of a sequence differs
// from those before it. The gap is the distance, after six layers, of its state from the last state
// of the same sequence with that token repeated. Tokens have one channel. Queries, keys and values
// are the states themselves, to which attention's output is added:
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
/// The probe's lengths: 128, 256, ... up to kLastCollapse if few rows must be computed, as in a
/// constant prefix whose rows all have the same weights; else up to kLastOfAllRows.
inline constexpr int64_t kFirstCollapse = 128, kLastCollapse = 16384, kLastOfAllRows = 512;

/// For a normalizer with a single alpha. Causal, in fp64.
std::vector<CollapseGap> collapse_gaps(const NormalizerForm& normalizer, CollapsePrefix prefix);

}  // namespace bamtrain

#pragma once
// What statistics of the CPU attention take from a row of logits.

#include <algorithm>

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_row_sums.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

struct RowStatistics {
  Tensor entropy, support;  // (B, H, T) P
  bool constant_alone;      // NormalizerTraits

  /// Those of the row at `at`, whose logits z become weights; u is scratch.
  void take(int64_t at, float* z, float* u, int64_t n, const RowNormalizer& normalizer,
            const SavedRow& saved) const {
    support.ptr<float>()[at] = static_cast<float>(normalizer.support(z, n, saved));
    normalizer.recall(z, u, n, saved);
    // A constant weight is 1 or 0. A weight that rounds above 1 gives no entropy below 0.
    const bool constant = n == 1 && constant_alone;
    entropy.ptr<float>()[at] = constant ? 0 : std::max(row::entropy(z, n), 0.0f);
  }
};

/// cpu_attention_statistics where heads are mixed.
void cpu_attention_mix_statistics(const RowStatistics& out, const AttentionSaved& saved,
                                  const Attention& a, const AttentionScratch& s);

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

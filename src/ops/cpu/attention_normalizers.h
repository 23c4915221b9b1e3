#pragma once
// Normalizers of the CPU attention, a whole row of logits at a time.

#include <cstdint>
#include <functional>

#include "ops/attention.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

/// What AttentionSaved keeps of a row; `last` counts from the row's first key.
struct SavedRow {
  float level = 0, threshold = 0;
  int32_t last = 0;
};

/// Of one task. A row has n keys, the last of them its own; after them its arrays have room up to
/// a multiple of simd::kWidth, where logits are minus infinity and weights become 0.
class RowNormalizer {
 public:
  virtual ~RowNormalizer() = default;
  /// Of the rows to come.
  virtual void set_head(int64_t) {}
  /// The logits in z become weights.
  virtual void weights(float* z, int64_t n, SavedRow& saved) const = 0;
  /// The same from what was saved; u is what adjoint() reads with them. Logits that are minus
  /// infinity have no weight.
  virtual void recall(float* z, float* u, int64_t n, const SavedRow& saved) const = 0;
  /// How many of the keys with logits z have weight, however little: an underflow counts.
  virtual int64_t support(const float* z, int64_t n, const SavedRow& saved) const = 0;
  /// dP in dp becomes dz; returns the gradient of alpha where it is learned.
  virtual float adjoint(float* dp, const float* p, const float* u, int64_t n) const = 0;
};

/// Work with a normalizer, which takes no memory: std::ref of a function.
using RowWork = std::function<void(RowNormalizer&)>;
/// row::rows_of(N(), a) of normalizer_NAME.h makes it.
void with_row_normalizer(const Attention& a, const RowWork& work);

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

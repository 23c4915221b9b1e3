#include "ops/cpu/attention_strips.h"

#include "ops/cpu/attention_row_sums.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

void Results::weigh(const Block& z, const Block& row, int64_t at, const NormalizerTraits& traits,
                    const RowNormalizer& normalizer, float* u, const LiveTiles& live) const {
  const auto first = static_cast<int32_t>(row.j0);
  fill_outside(z, row, kMinusInfinity);
  if (nonzero_keys) {
    SavedRow of_row = saved_row(saved, at);
    of_row.last -= first;
    nonzero_keys.ptr<float>()[at] =
        static_cast<float>(normalizer.support(row.data, row.keys(), of_row));
    normalizer.recall(row.data, u, row.keys(), of_row);
  } else {
    SavedRow of_row;
    normalizer.weights(row.data, row.keys(), of_row);
    of_row.last += first;
    save_row(saved, at, of_row);
  }
  if (entropy) {
    // A constant weight is 1 or 0. A weight that rounds above 1 gives no entropy below 0.
    const bool constant = row.keys() == 1 && traits.constant_alone();
    entropy.ptr<float>()[at] = constant ? 0 : std::max(row::entropy(row.data, row.keys()), 0.0f);
  }
  if (!out) return;
  fill_outside(z, row, 0);
  for (int64_t j0 = z.j0; live && j0 < z.end; j0 += kK) {
    // NaN is weight too.
    if (!(row::total(z.at(row.i0, j0), kK) <= 0)) live.mark(row.i0, j0);
  }
}

Block row_adjoint(const Block& p, const Block& dz, const Block& row, const LiveTiles& live,
                  const AttentionSaved& saved, const Tensor& dalpha, int64_t at,
                  const NormalizerTraits& traits, const RowNormalizer& normalizer, float* u) {
  for (int64_t j0 = p.j0; j0 < p.end; j0 += kK) {
    if (live.any(p.i0, p.i1, j0)) continue;
    std::fill_n(p.at(row.i0, j0), kK, kMinusInfinity);
    std::fill_n(dz.at(row.i0, j0), kK, 0.0f);
  }
  const Block to = dz.row(row.i0, row.j0, row.end - 1);
  fill_outside(dz, to, 0);
  fill_outside(p, row, kMinusInfinity);
  SavedRow of_row = saved_row(saved, at);
  of_row.last -= static_cast<int32_t>(row.j0);
  normalizer.recall(row.data, u, row.keys(), of_row);
  fill_outside(p, row, 0);
  float gradient = 0;
  if (row.keys() > 1 || !traits.constant_alone()) {
    gradient = normalizer.adjoint(to.data, row.data, u, row.keys());
  } else {  // one visible key: its weight is a constant
    if (traits.sums_to_one) *row.data = 1;
    *to.data = 0;
  }
  if (dalpha) dalpha.ptr<float>()[at] = gradient;
  return to;
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain

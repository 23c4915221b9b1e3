#pragma once
// BLEU of a corpus (Papineni et al. 2002): how many n-grams of what was written the references
// have.

#include <array>
#include <cstdint>
#include <span>

namespace bamtrain {

/// Counts of pairs, ids as words, n up to 4; all of them numbers that processes add up.
struct BleuCounts {
  static constexpr int kLongest = 4;
  std::array<double, kLongest> matched = {}, written = {};  // n-grams, by n - 1
  double words = 0, reference_words = 0;
  static constexpr int64_t kNumbers = 2 * kLongest + 2;

  /// An n-gram counts as often as the reference has it.
  void add(std::span<const int32_t> text, std::span<const int32_t> reference);

  /// min(1, exp(1 - r / c)) times the geometric mean of the precisions, unsmoothed: 0 where some n
  /// matches nowhere; n of which no text is long enough are left out. 0 to 1.
  double score() const;
};
static_assert(sizeof(BleuCounts) == BleuCounts::kNumbers * sizeof(double));

}  // namespace bamtrain

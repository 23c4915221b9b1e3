#pragma once
// Corpus BLEU (Papineni et al. 2002): which share of the generated n-grams occurs in the
// references.

#include <array>
#include <cstdint>
#include <span>

namespace bamtrain {

/// n-gram counts over pairs of text and reference, for n up to 4, with token ids as words. All are
/// numbers that processes can sum.
struct BleuCounts {
  static constexpr int kLongest = 4;
  std::array<double, kLongest> matched = {}, written = {};  // n-grams, by n - 1
  double words = 0, reference_words = 0;
  static constexpr int64_t kNumbers = 2 * kLongest + 2;

  /// Adds a pair. Matches of an n-gram are clipped to its count in the reference.
  void add(std::span<const int32_t> text, std::span<const int32_t> reference);

  /// min(1, exp(1 - r / c)) times the geometric mean of the precisions, unsmoothed: 0 if some n has
  /// no match. Omits n for which every text is too short. 0 to 1.
  double score() const;
};
static_assert(sizeof(BleuCounts) == BleuCounts::kNumbers * sizeof(double));

}  // namespace bamtrain

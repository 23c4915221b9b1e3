#pragma once
// The merging of a byte-level BPE (Sennrich et al. 2016, as GPT-2's): of the neighbours that have a
// merge, those of the lowest rank become one, of equal rank the leftmost, until none has one.

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/byte_pair_definition.h"

namespace bamtrain {

/// Immutable.
class BytePairMerger {
 public:
  /// The tokens' bytes are views of `definition`, which must outlive it. REQUIRES: a normal token
  /// for each of the 256 bytes.
  explicit BytePairMerger(const BytePairDefinition& definition);

  /// Appends the ids of `piece`, in O(n log n) of its length.
  void merge(std::string_view piece, std::vector<int32_t>* ids) const;

 private:
  struct Rule {
    uint64_t pair = 0;  // left and right id, plus 1 each: 0 is an empty place
    int32_t rank = 0, result = 0;
  };

  const Rule* rule(int32_t left, int32_t right) const;
  void merge_few(std::string_view piece, std::vector<int32_t>* ids) const;
  void merge_many(std::string_view piece, std::vector<int32_t>* ids) const;

  bool whole_first_;
  std::array<int32_t, 256> byte_ids_;
  std::unordered_map<std::string_view, int32_t> whole_;  // where whole_first_
  std::vector<Rule> rules_;  // open addressing; a power of two, at most half of it in use
  int shift_ = 0;            // 64 less its binary logarithm
};

}  // namespace bamtrain

#pragma once
// Byte-level BPE merging (Sennrich et al. 2016, GPT-2's variant). Of all adjacent pairs that have a
// merge, the one of lowest rank is merged, among equal ranks the leftmost, until no pair has a
// merge.

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

  /// Appends the ids of `piece`, in O(n log n) of its length n.
  void merge(std::string_view piece, std::vector<int32_t>* ids) const;

 private:
  struct Rule {
    uint64_t pair = 0;  // left and right id, plus 1 each; 0: empty slot
    int32_t rank = 0, result = 0;
  };

  const Rule* rule(int32_t left, int32_t right) const;
  void merge_few(std::string_view piece, std::vector<int32_t>* ids) const;
  void merge_many(std::string_view piece, std::vector<int32_t>* ids) const;

  bool whole_first_;
  std::array<int32_t, 256> byte_ids_;
  std::unordered_map<std::string_view, int32_t> whole_;  // filled if whole_first_
  std::vector<Rule> rules_;  // open addressing; size a power of two, at most half full
  int shift_ = 0;            // 64 - log2(rules_.size())
};

}  // namespace bamtrain

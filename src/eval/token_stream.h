#pragma once
// Stretches of shards, one behind the other, as one row of tokens.

#include <cstdint>
#include <vector>

#include "data/shard_set.h"

namespace bamtrain {

class TokenStream {
 public:
  /// `shards` outlives this. Stretches without tokens are left out.
  TokenStream(const ShardSet& shards, const std::vector<DocumentSpan>& stretches);

  int64_t tokens() const { return tokens_; }
  /// A stretch as it lies in the stream.
  struct Part {
    int64_t begin = 0, length = 0;
  };
  std::vector<Part> parts() const;
  /// Tokens [begin, begin + count) into out[0, count), across the ends of stretches.
  /// Errors: as Shard::read. REQUIRES: 0 <= begin, 0 <= count, begin + count <= tokens().
  void read(int64_t begin, int64_t count, int32_t* out) const;

 private:
  const ShardSet& shards_;
  std::vector<DocumentSpan> stretches_;
  std::vector<int64_t> starts_;  // of each stretch, in the stream
  int64_t tokens_ = 0;
};

/// All tokens of the set in order, but for `dropped` ids, which are no token of any stretch.
/// Reads the set once for each of these. Errors: as Shard::find_all.
std::vector<DocumentSpan> stretches_without(const ShardSet& shards,
                                            const std::vector<int64_t>& dropped);

}  // namespace bamtrain

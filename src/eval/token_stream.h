#pragma once
// A sequence of shard stretches, concatenated into one stream of tokens.

#include <cstdint>
#include <vector>

#include "data/shard_set.h"

namespace bamtrain {

class TokenStream {
 public:
  /// `shards` must outlive this. Empty stretches are skipped.
  TokenStream(const ShardSet& shards, const std::vector<DocumentSpan>& stretches);

  int64_t tokens() const { return tokens_; }
  /// A stretch's position in the stream.
  struct Part {
    int64_t begin = 0, length = 0;
  };
  std::vector<Part> parts() const;
  /// Reads tokens [begin, begin + count) into out[0, count), across stretches. Errors: as
  /// Shard::read. REQUIRES: 0 <= begin, 0 <= count, begin + count <= tokens().
  void read(int64_t begin, int64_t count, int32_t* out) const;

 private:
  const ShardSet& shards_;
  std::vector<DocumentSpan> stretches_;
  std::vector<int64_t> starts_;  // start of each stretch in the stream
  int64_t tokens_ = 0;
};

/// All tokens of the set in order, without the `dropped` ids. Reads the set once for each of these.
/// Errors: as Shard::find_all.
std::vector<DocumentSpan> stretches_without(const ShardSet& shards,
                                            const std::vector<int64_t>& dropped);

}  // namespace bamtrain

#pragma once
// `bamdata inspect`: shows the content of a set of token shards.

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "data/shard_set.h"

namespace bamtrain {

struct InspectOptions {
  std::string path;                       // see shard_sources
  std::optional<int64_t> document_start;  // default: the manifest's
  int64_t from = 0, count = 0;            // tokens to show, counted over all shards in order
  std::string tokenizer;  // to decode them; empty: the one next to the shards, or show ids only
  bool json = false;
};

/// Lengths of a set's documents in tokens, including the first one (BOS).
class DocumentLengths {
 public:
  /// Reads all tokens. A document that continues in the next shard counts as one, with its whole
  /// length.
  DocumentLengths(const ShardSet& shards, int64_t document_start);

  int64_t documents() const { return documents_; }
  int64_t leading_tokens() const { return leading_tokens_; }  // before the first document
  double mean() const;                                        // 0 without documents
  /// The smallest length such that at least the share `p` of all documents is not longer: 0 gives
  /// the shortest, 0.5 the median, 1 the longest. 0 without documents. REQUIRES: 0 <= p <= 1.
  int64_t quantile(double p) const;
  /// Documents by length: key 2^k counts those with 2^k to 2^(k+1) - 1 tokens.
  std::map<int64_t, int64_t> histogram() const;

 private:
  std::map<int64_t, int64_t> count_of_;  // by length
  int64_t documents_ = 0, tokens_ = 0, leading_tokens_ = 0;
};

/// Prints to `out`, as human-readable lines or as one JSON object {"sets": [...]}. Errors: as
/// ShardSet::open and Tokenizer::open; Error (data) if the tokenizer is not the manifest's; Error
/// (usage) for tokens past the end, or tokens of several sets.
void inspect(const InspectOptions& options, std::FILE* out);

}  // namespace bamtrain

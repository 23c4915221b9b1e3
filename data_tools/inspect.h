#pragma once
// `bamdata inspect`: what is in a set of token shards.

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
  int64_t from = 0, count = 0;            // tokens to show, counted over all shards in their order
  std::string tokenizer;                  // to show them as text; empty: ids only
  bool json = false;
};

/// How long the documents of a set are, in tokens, the first one (BOS) included.
class DocumentLengths {
 public:
  /// Reads all tokens. A document that runs on into the next shard is counted whole.
  DocumentLengths(const ShardSet& shards, int64_t document_start);

  int64_t documents() const { return documents_; }
  int64_t leading_tokens() const { return leading_tokens_; }  // before the first document
  double mean() const;                                        // 0 without documents
  /// The smallest length that at least the share `p` of all documents does not exceed: 0 the
  /// shortest, 0.5 the median, 1 the longest. 0 without documents. REQUIRES: 0 <= p <= 1.
  int64_t quantile(double p) const;
  /// Documents by length: key 2^k counts those of 2^k to 2^(k+1) - 1 tokens.
  std::map<int64_t, int64_t> histogram() const;

 private:
  std::map<int64_t, int64_t> count_of_;  // by length
  int64_t documents_ = 0, tokens_ = 0, leading_tokens_ = 0;
};

/// Prints to `out`, as lines for people or as one JSON object {"sets": [...]}.
/// Errors: as ShardSet::open and Tokenizer::open; Error (data) where the tokenizer is not the one
/// of the manifest; Error (usage) where tokens are asked for that are not there, or of several
/// sets.
void inspect(const InspectOptions& options, std::FILE* out);

}  // namespace bamtrain

#pragma once
// Prefix sharing: which requests share a prefix that is prefilled once, and which prefixes make a
// batch. The plan depends on token ids alone, not on the model.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prompts/encoded_request.h"

namespace bamtrain {

/// Requests with a common prefix, which is prefilled once. A request's suffix is what follows the
/// prefix, without its last id, which is a target only.
struct SharedPrefix {
  int64_t tokens = 0;            // of the prefix; none of them predicts a continuation's
  std::vector<size_t> requests;  // one at least, by number; the longest first
};

/// Tokens that are read of a request.
inline int64_t inputs_of(const EncodedRequest& request) { return std::ssize(request.ids) - 1; }
/// Tokens of the longest suffix.
int64_t longest_suffix(const SharedPrefix& context, std::span<const EncodedRequest> requests);
/// Tokens that are read of all requests, the prefix once.
int64_t inputs_of(const SharedPrefix& context, std::span<const EncodedRequest> requests);

/// Groups `requests` by prefix so that the fewest tokens are read, where
///   - at most 64 requests share a prefix, which spares at least a quarter of their tokens,
///   - the suffixes of a shared prefix have at most `longest_suffix` tokens.
/// A request that shares nothing has a prefix of its own: all before its continuation.
/// REQUIRES: 1 <= begin < ids of each request, no two the same; O(64 n) comparisons of two.
std::vector<SharedPrefix> shared_prefixes(std::span<const EncodedRequest> requests,
                                          int64_t longest_suffix);

/// Batches of at most `most` prefixes, padded to the longest, and each round of suffixes to the
/// longest suffix. Their shapes are similar, and the prefix with most requests comes first. No
/// sequence is longer than the longest request. A batch of 2,048 tokens or more takes no prefix
/// that would make more than an eighth of it padding.
std::vector<std::vector<SharedPrefix>> prefix_batches(std::vector<SharedPrefix> contexts,
                                                      std::span<const EncodedRequest> requests,
                                                      int64_t most);

}  // namespace bamtrain

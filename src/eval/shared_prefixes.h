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
/// prefix, without its last id, which is only a target.
struct SharedPrefix {
  int64_t tokens = 0;            // tokens of the prefix; none of them predicts a continuation token
  std::vector<size_t> requests;  // at least one, by index; longest first
};

/// Tokens of a request that are read.
inline int64_t inputs_of(const EncodedRequest& request) { return std::ssize(request.ids) - 1; }
/// Tokens of the longest suffix.
int64_t longest_suffix(const SharedPrefix& context, std::span<const EncodedRequest> requests);
/// Tokens read for all its requests, with the prefix once.
int64_t inputs_of(const SharedPrefix& context, std::span<const EncodedRequest> requests);

/// Groups `requests` by prefix so that the fewest tokens are read, where
///   - at most 64 requests share a prefix, which saves at least a quarter of their tokens,
///   - the suffixes of a shared prefix have at most `longest_suffix` tokens.
/// A request that shares nothing has its own prefix: everything before its continuation. REQUIRES:
/// 1 <= begin < ids of each request, all distinct. O(64 n) comparisons of two requests.
std::vector<SharedPrefix> shared_prefixes(std::span<const EncodedRequest> requests,
                                          int64_t longest_suffix);

/// Batches of at most `most` prefixes of similar shapes, padded to the longest prefix; each round
/// of suffixes is padded to its longest suffix. The prefix with most requests comes first. No
/// sequence is longer than the longest request. A batch of at least 2,048 tokens adds no prefix
/// that would make more than an eighth of it padding.
std::vector<std::vector<SharedPrefix>> prefix_batches(std::vector<SharedPrefix> contexts,
                                                      std::span<const EncodedRequest> requests,
                                                      int64_t most);

}  // namespace bamtrain

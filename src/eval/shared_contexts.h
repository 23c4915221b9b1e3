#pragma once
// Which requests are read behind one beginning of theirs, and which of these beginnings side by
// side: a plan in ids alone, whatever the model.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prompts/encoded_request.h"

namespace bamtrain {

/// Requests and a beginning that all of them have, which is read once. What is read of a request
/// behind it, its rest, ends before its last id, which is only asked for.
struct SharedContext {
  int64_t tokens = 0;            // of the beginning; none of them predicts a continuation's
  std::vector<size_t> requests;  // one at least, by number; the longest first
};

/// Tokens that are read of a request.
inline int64_t inputs_of(const EncodedRequest& request) { return std::ssize(request.ids) - 1; }
/// Tokens of the longest of a context's requests behind it.
int64_t longest_rest(const SharedContext& context, std::span<const EncodedRequest> requests);
/// Tokens that are read of all of them, the beginning once.
int64_t inputs_of(const SharedContext& context, std::span<const EncodedRequest> requests);

/// Divides `requests` by what they begin with, so that the fewest tokens are read where
///   - a context is shared by 64 requests at most, which spares a quarter of their tokens,
///   - the rests of more than one are `longest_rest` tokens at most.
/// A request that shares nothing has a context of its own: all before its continuation.
/// REQUIRES: 1 <= begin < ids of each request, no two the same; O(64 n) comparisons of two.
std::vector<SharedContext> shared_contexts(std::span<const EncodedRequest> requests,
                                           int64_t longest_rest);

/// Contexts that are read side by side, `most` at most, padded to the longest beginning and each
/// round of rests to the longest of them: batches of alike shapes, the context of most requests
/// first, none with a text longer than the longest request. One of 2,048 tokens or more takes no
/// other context that would make more than an eighth of it padding.
std::vector<std::vector<SharedContext>> side_by_side(std::vector<SharedContext> contexts,
                                                     std::span<const EncodedRequest> requests,
                                                     int64_t most);

}  // namespace bamtrain

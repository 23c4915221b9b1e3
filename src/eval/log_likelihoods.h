#pragma once
// Log-likelihoods of continuations, given their contexts.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eval/task_scores.h"
#include "prompts/encoded_request.h"

namespace bamtrain {

struct LogLikelihood {
  double logprob = 0;   // sum over the continuation's tokens, nats
  bool greedy = false;  // each of them is the likeliest behind those before it
  int64_t right = 0;    // how many are
};

/// The request of the most ids. REQUIRES: one at least.
size_t longest_request(std::span<const EncodedRequest> requests);

/// Log-probabilities of the continuations, in the order of the requests; equal ones are computed
/// once. A request's own tokens alone are seen and counted, in a sequence as long as it is by
/// itself, whatever else is asked, which changes the last bits at most: where the backend's
/// products round by how many rows they have, and where running sums begin in padding.
/// Requests of one context read it once where the model's attention takes texts in pieces
/// (supports_chunked_prefill): by incremental decoding, back to the context's end after each, many
/// contexts side by side (eval/shared_prefixes.h). The others are read as a whole, in batches of
/// one length, padded by nothing; long ones in pieces (prefers_chunked_prefill): of a whole pass
/// some numbers of each layer are there for every token, of pieces keys and values alone. Memory is
/// planned for the longest, once for each of these ways, one after the other. Processes share the
/// batches: collective, the same bits for every number of them. `document_start`: as
/// Network::evaluate's. REQUIRES: the model is a decoder that knows the longest request's length,
/// less its last token (check_causal_lm, Network::check_length).
std::vector<LogLikelihood> log_likelihoods(std::span<const EncodedRequest> requests,
                                           const ScoredModel& model,
                                           std::optional<int64_t> document_start,
                                           const TaskShare& share, const TaskProgress& progress);

/// Memory that it takes beside the master weights and the requests.
int64_t log_likelihoods_bytes(std::span<const EncodedRequest> requests, const ScoredModel& model);
/// At most, for `requests` different ones of `ids` ids each.
int64_t log_likelihoods_bytes(int64_t ids, int64_t requests, const ScoredModel& model);

}  // namespace bamtrain

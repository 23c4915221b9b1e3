#pragma once
// Log-likelihoods of continuations given their contexts.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eval/task_scores.h"
#include "prompts/encoded_request.h"

namespace bamtrain {

struct LogLikelihood {
  double logprob = 0;   // sum over the continuation's tokens, nats
  bool greedy = false;  // each token is the likeliest given those before it
  int64_t right = 0;    // number of tokens that are the likeliest
};

/// Index of the request with the most ids. REQUIRES: at least one request.
size_t longest_request(std::span<const EncodedRequest> requests);

/// Log-probabilities of the continuations, in the order of the requests; duplicates are computed
/// once. A request attends only to its own tokens, in a sequence of its own length. Other requests
/// can change only the last bits: where the backend's matmul rounding depends on the number of
/// rows, and where running sums begin in padding. Requests with a common context prefill it once if
/// the model supports it (supports_chunked_prefill): incremental decoding rolls back to the
/// context's end after each, with many contexts in a batch (eval/shared_prefixes.h). Others are
/// read in one forward pass, in batches of one length without padding; long ones by chunked prefill
/// (prefers_chunked_prefill), which keeps only keys and values of each layer for every token.
/// Memory is planned for the longest request, once for each of these ways, which run in sequence.
/// Processes share the batches: collective, bitwise identical for any number of processes.
/// `document_start`: as for Network::evaluate. REQUIRES: the model is a decoder (check_causal_lm)
/// that supports the longest request's length without its last token (Network::check_length).
std::vector<LogLikelihood> log_likelihoods(std::span<const EncodedRequest> requests,
                                           const ScoredModel& model,
                                           std::optional<int64_t> document_start,
                                           const TaskShare& share, const TaskProgress& progress);

/// Memory used in addition to the master weights and the requests.
int64_t log_likelihoods_bytes(std::span<const EncodedRequest> requests, const ScoredModel& model);
/// Upper bound for `requests` distinct requests of `ids` ids each.
int64_t log_likelihoods_bytes(int64_t ids, int64_t requests, const ScoredModel& model);

}  // namespace bamtrain

#pragma once
// Perplexity against length, by three protocols, on a text laid out by perplexity_text.h.
//
//   windows  (a) non-overlapping windows of each length, all positions (Cable)
//   last     (b) the last K tokens of windows of each length (DAPE); with `documents`, windows end
//                at the same places, so all lengths score the same K tokens
//   bins     (c) one pass at the longest length, mean loss per bin of positions (BAM)
//
// Short documents are read whole instead, once each. Perplexity is exp of the mean loss.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/shard_set.h"
#include "eval/perplexity_text.h"
#include "eval/task_scores.h"
#include "model/model.h"

namespace bamtrain {

/// Progress of a long evaluation: protocol, length, share done.
using PerplexityProgress = std::function<void(const std::string&, int64_t, double)>;

/// Checks everything that perplexity_against_length would refuse of text and request, before any
/// time is spent. Returns the data's document counts. Errors as EvaluatedText.
DocumentCounts check_perplexity_request(const ShardSet& shards, const PerplexityRequest& request);

/// Peak memory of these lengths, in addition to the master weights. The longest may not be the
/// largest, since it may use chunked prefill. Errors as WindowReader.
int64_t perplexity_bytes(const ScoredModel& model, const std::vector<int64_t>& lengths);

/// Evaluates the model with these trained weights on `shards`. Returns, of the following, what is
/// requested:
/// {"text", "documents" (read) and "all_documents", or for packed text "tokens" and "dropped",
///  "windows": [{"length", "loss", "loss_error", "perplexity", "perplexity_error", "tokens",
///  "documents"}...], "last": [...], "last_tokens", "bins": [{"from", "to", ...}], "short":
///  [{"from", "length", ...}], "positions": {"to", "step", "windows", "loss": [...]}}
/// With token_bytes, each row has "bytes" of its targets and "bits_per_byte": the targets' total
/// loss in bits, per byte. Errors are standard errors of sampling documents
/// (core/clustered_mean.h); null if one document gave all targets. For packed text they are by
/// stretch of the longest length, and rows have "stretches" instead of "documents". Rows also have
/// what pairs them, see eval/paired_rows.h. Positions are averaged over "step" of them, so that
/// there are at most kMostPositions means. Errors as check_perplexity_request.
nlohmann::ordered_json perplexity_against_length(const ModelConfig& config, int64_t training_length,
                                                 Backend& backend, Dtype activations,
                                                 const Tensor& master_weights,
                                                 const ShardSet& shards,
                                                 const PerplexityRequest& request,
                                                 const PerplexityProgress& progress);

}  // namespace bamtrain

#pragma once
// Perplexity against length, by three protocols, on a text that perplexity_text.h lays out.
//
//   windows  (a) non-overlapping windows of each length, all positions (Cable)
//   last     (b) the last K tokens of windows of each length (DAPE); of `documents` windows end
//                at the same places, so the same K tokens at every length
//   bins     (c) one pass at the longest length, mean loss per bin of positions (BAM)
//
// Short documents are read whole instead, each once. Perplexity is exp of the mean loss.

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

/// Everything that perplexity_against_length would refuse of text and request, before any time is
/// spent. Returns what the data have of documents. Errors as EvaluatedText.
DocumentCounts check_perplexity_request(const ShardSet& shards, const PerplexityRequest& request);

/// Memory that these lengths take at most beside the master weights; not always the longest, which
/// may be read in pieces. Errors as WindowReader.
int64_t perplexity_bytes(const ScoredModel& model, const std::vector<int64_t>& lengths);

/// Evaluates `model`, whose master weights hold the trained weights, on `shards`. The result:
/// {"text", "documents" that are read of "all_documents", or of packed text "tokens" and "dropped",
///  "windows": [{"length", "loss", "loss_error", "perplexity", "perplexity_error", "tokens",
///  "documents"}...], "last": [...], "last_tokens", "bins": [{"from", "to", ...}], "short":
///  [{"from", "length", ...}], "positions": {"to", "step", "windows", "loss": [...]}}, of these
///  what is asked for.
/// Where token_bytes are known each row has "bytes", those of its targets, and "bits_per_byte":
/// what the losses of all targets, in bits, are per byte. The errors are standard errors of
/// sampling the documents, see core/clustered_mean.h; null where one document gave all targets. Of
/// packed text they are by stretch of the longest length, and rows have "stretches" in place of
/// "documents". Positions are thinned to means over `step` of them, kMostPositions at most.
/// Errors as check_perplexity_request.
nlohmann::ordered_json perplexity_against_length(const ModelConfig& config, int64_t training_length,
                                                 Backend& backend, Dtype activations,
                                                 const Tensor& master_weights,
                                                 const ShardSet& shards,
                                                 const PerplexityRequest& request,
                                                 const PerplexityProgress& progress);

}  // namespace bamtrain

#pragma once
// Perplexity against length on single documents, by three protocols.
//
// Documents at least as long as the longest length are used, each cut to a whole number of longest
// windows. No attention crosses documents, so no document mask is needed.
//
//   windows  (a) non-overlapping windows of each length, all positions: the same targets everywhere
//   last     (b) the last K tokens of windows of each length that end at the same places, so the
//                same K tokens at every length (DAPE)
//   bins     (c) one pass at the longest length, mean loss per bin of 1,024 positions (BAM)

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/shard_set.h"
#include "model/model.h"

namespace bamtrain {

struct PerplexityRequest {
  static constexpr int64_t kMostLength = int64_t{1} << 24;
  static constexpr int64_t kBin = 1024;  // positions per bin of protocol (c)
  std::vector<int64_t> lengths;          // ascending, unique, from 1 to kMostLength
  std::vector<std::string> protocols = {"windows", "last", "bins"};
  int64_t last_tokens = 0;     // K; 0: 256, or the shortest length where that is less
  int64_t max_tokens = 0;      // targets per length and protocol; 0: all
  int64_t document_start = 0;  // the id that begins a document
  /// How many bytes of text each id is; what is past its end has none. Empty: not known.
  std::vector<int64_t> token_bytes = {};
};

/// Progress of a long evaluation: protocol, length, share done.
using PerplexityProgress = std::function<void(const std::string&, int64_t, double)>;

/// Everything that perplexity_against_length would refuse, before any time is spent.
/// Error (ExitCode::data) where no document is long enough for the longest length,
/// (ExitCode::usage) where last_tokens exceeds the shortest.
void check_perplexity_request(const ShardSet& documents, const PerplexityRequest& request);

/// Tokens of the longest document; 0 where there is none.
int64_t longest_document(const ShardSet& documents, int64_t document_start);

/// Evaluates `model`, whose masters hold the trained weights, on `documents`. The result:
/// {"documents", "windows": [{"length", "loss", "loss_error", "perplexity", "perplexity_error",
///  "tokens", "documents"}...], "last": [...], "last_tokens", "bins": [{"from", "to", ...}]}.
/// Where token_bytes are known each row has "bytes", those of its targets, and "bits_per_byte":
/// what the losses of all targets, in bits, are per byte. The errors are standard errors of
/// sampling the documents, see core/clustered_mean.h; null where one document gave all targets.
/// Errors as check_perplexity_request.
nlohmann::ordered_json perplexity_against_length(const ModelConfig& config, int64_t training_length,
                                                 Backend& backend, Dtype activations,
                                                 const Tensor& masters, const ShardSet& documents,
                                                 const PerplexityRequest& request,
                                                 const PerplexityProgress& progress);

}  // namespace bamtrain

#pragma once
// Reads perplexity.json. The report and the card of an exported model use the same reader, so they
// refuse the same files.

#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/clustered_mean.h"
#include "record/run_lines.h"

namespace bamtrain {

/// A protocol's result at one length, or in the bin of positions from `from` up to `length`. For
/// short documents: those of `from` to `length` tokens.
struct LengthPerplexity {
  int64_t length = 0;
  double perplexity = 0;
  StandardError error = std::nullopt;
  int64_t from = 0;
  std::optional<double> bits_per_byte = std::nullopt;  // if the tokenizer was known
  double loss = NAN;                                   // NaN: missing or null
  StandardError loss_error = std::nullopt;
  int64_t tokens = 0;
  /// Rows with equal `targets` (a SHA-256) score the same targets of the same documents. Their
  /// `clusters` pair: the sums of the losses by document. Both are empty in older files, and in
  /// results of very many documents.
  std::string targets = {};
  std::vector<Cluster> clusters = {};
};

struct PerplexityResult {
  int64_t step = 0, training_length = 0, last_tokens = 0;
  std::string data_fingerprint;
  // Ascending. `positions` are bins too, but without errors.
  std::vector<LengthPerplexity> windows, last, bins, short_documents = {}, positions = {};
  bool packed = false;    // errors are by text block, not by document
  int64_t documents = 0;  // number of documents in the data that were read; 0: packed text
};

/// Whether their clusters pair. False for results without sums by document.
bool have_same_targets(const LengthPerplexity& a, const LengthPerplexity& b);

/// Maximum number of columns or rows in a table of lengths.
inline constexpr size_t kMostLengthTicks = 12;

/// Maximum number of means by position.
inline constexpr size_t kMostPositionMeans = 4096;

/// The object in the file at `path`. Throws Error (ExitCode::io), see parse_digested_json, also for
/// more than 64 MiB.
nlohmann::json perplexity_json(const std::string& path);

/// Parses what `bamtrain eval --output` writes. Throws Error (ExitCode::io), also for results of
/// several data sets.
PerplexityResult read_perplexity(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

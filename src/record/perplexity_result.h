#pragma once
// perplexity.json, for all who read it: the report and the card of an exported model refuse the
// same files.

#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "record/run_lines.h"

namespace bamtrain {

/// A protocol's result at one length, or in the bin of positions from `from` up to `length`; of
/// short documents, those of `from` to `length` tokens.
struct LengthPerplexity {
  int64_t length = 0;
  double perplexity = 0;
  StandardError error = std::nullopt;
  int64_t from = 0;
  std::optional<double> bits_per_byte = std::nullopt;  // where the tokenizer was known
  double loss = NAN;                                   // NaN: none, or it does not say
  StandardError loss_error = std::nullopt;
  int64_t tokens = 0;
};

struct PerplexityResult {
  int64_t step = 0, training_length = 0, last_tokens = 0;
  std::string data_fingerprint;
  // Ascending. `positions` are bins too, without errors.
  std::vector<LengthPerplexity> windows, last, bins, short_documents = {}, positions = {};
  bool packed = false;    // errors are by stretch of the text, not by document
  int64_t documents = 0;  // of the data that were read; 0: packed text
};

/// Columns or rows of a table of lengths: no more than these.
inline constexpr size_t kMostLengthTicks = 12;

/// The most means by position.
inline constexpr size_t kMostPositionMeans = 4096;

/// The object in the file at `path`. Error (ExitCode::io), see parse_digested_json; for more than
/// 64 MiB too.
nlohmann::json perplexity_json(const std::string& path);

/// What it says, as `bamtrain eval --output` writes it. Error (ExitCode::io), for the results of
/// several data sets too.
PerplexityResult read_perplexity(const nlohmann::json& json, const std::string& where);

}  // namespace bamtrain

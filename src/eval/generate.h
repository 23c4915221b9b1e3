#pragma once
// Generates text after a prompt.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.h"
#include "data/tokenizer.h"
#include "eval/sampling.h"
#include "model/incremental_decoder.h"

namespace bamtrain {

/// How much is generated, and how. The model may also end the text earlier (see generate).
struct GenerationLimits {
  static constexpr int64_t kMostTokens = int64_t{1} << 24;
  int64_t max_tokens = 256;  // 1 to kMostTokens
  Sampling sampling;
  std::vector<std::string> stops;  // strings before which the text ends (TextStream)
};

/// A prompt in the training format: the id that begins a document, if any, then the text's ids.
struct Prompt {
  std::vector<int32_t> ids;
  bool empty = true;  // the generated tokens begin the text

  /// Throws Error (ExitCode::data) for invalid UTF-8, and for empty text without a document-start
  /// id; `where` names it in errors.
  Prompt(const Tokenizer& tokenizer, std::optional<int64_t> document_start, const std::string& text,
         const std::string& where);

  /// Most tokens that the model then reads.
  int64_t longest(const GenerationLimits& limits) const {
    return static_cast<int64_t>(ids.size()) + limits.max_tokens - 1;
  }
};

/// Calls show() with consecutive parts of the generated text, each valid UTF-8. Stops after
/// max_tokens, at a stop string, and at the document-start id or the tokenizer's EOS. Ids outside
/// the tokenizer's vocabulary are never drawn. Token n is drawn with index n of `rng`. Errors: as
/// Sampler::draw. REQUIRES: room for prompt.longest(limits) in `model`; its previous text is
/// cleared.
void generate(IncrementalDecoder& model, const Tokenizer& tokenizer,
              std::optional<int64_t> document_start, const Prompt& prompt,
              const GenerationLimits& limits, const Rng& rng,
              const std::function<void(const std::string&)>& show);

}  // namespace bamtrain

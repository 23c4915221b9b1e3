#pragma once
// Text that a model writes after a prompt.

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

/// What is written: as much as said, but for an end that the model chooses.
struct GenerationLimits {
  static constexpr int64_t kMostTokens = int64_t{1} << 24;
  int64_t max_tokens = 256;  // 1 to kMostTokens
  Sampling sampling;
  std::vector<std::string> stops;  // texts before which it ends (TextStream)
};

/// A prompt as the model was trained to read it: the id that begins a document, where there is one,
/// then the text's.
struct Prompt {
  std::vector<int32_t> ids;
  bool empty = true;  // what is written begins the text

  /// Error (ExitCode::data) for text that is no UTF-8, and for none without an id to begin with;
  /// `where` names it.
  Prompt(const Tokenizer& tokenizer, std::optional<int64_t> document_start, const std::string& text,
         const std::string& where);

  /// Tokens of the longest text that the model then reads.
  int64_t longest(const GenerationLimits& limits) const {
    return static_cast<int64_t>(ids.size()) + limits.max_tokens - 1;
  }
};

/// Calls show(piece) for pieces of the text that follows the prompt, in valid UTF-8 each. It ends
/// after max_tokens, at a stop string, and at a token that begins a document or is the tokenizer's
/// EOS; ids past the tokenizer's are not drawn. Token n is drawn with index n of `rng`. Errors: as
/// Sampler::draw. REQUIRES: room for prompt.longest(limits) in `model`, whose text it replaces.
void generate(IncrementalDecoder& model, const Tokenizer& tokenizer,
              std::optional<int64_t> document_start, const Prompt& prompt,
              const GenerationLimits& limits, const Rng& rng,
              const std::function<void(const std::string&)>& show);

}  // namespace bamtrain

#pragma once
// Perplexity protocols of papers, by name. Where a paper leaves something open, our choice is
// stated below.
//
//   bam       packed without special tokens (BOS, EOS), disjoint chunks of 32,769 tokens, loss by
//             bin of 1,024 positions, mean over the chunks (appendix H, code)
//   cable     packed, 512 to 16,384, windows of each length, all positions; a remainder that fills
//             no window is dropped (section 4)
//   dape      packed, the training length to 8,192, the last min(256, length) tokens, 20 batches of
//             8 x (128, 64, 32, 16, 8, 1, 1) windows of 128 to 8,192 (code); we take the first
//             ones in text order
//   asentmax  500 documents of more than 16,384 tokens, 1,024 to 16,384 (appendix G); it does
//             not say which positions: we take the first n tokens, all targets

#include <cstdint>
#include <string>
#include <vector>

#include "eval/perplexity_text.h"

namespace bamtrain {

inline const std::vector<std::string> kPaperProtocols = {"bam", "cable", "dape", "asentmax"};

struct PaperProtocol {
  PerplexityRequest request;          // without ids, which depend on the data
  bool drops_special_tokens = false;  // BOS and EOS, from packed text
};

/// `lengths`, ascending, replaces the paper's lengths unless empty. Throws Error (ExitCode::usage)
/// if the paper has no lengths for this training length; and, unless `counted`, for a length whose
/// number of windows the paper does not state. REQUIRES: a name in kPaperProtocols.
PaperProtocol paper_protocol(const std::string& name, int64_t training_length,
                             const std::vector<int64_t>& lengths, bool counted);

}  // namespace bamtrain

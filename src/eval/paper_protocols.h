#pragma once
// What papers evaluate perplexity by, under their names. Where a paper leaves something open, what
// is ours is said below.
//
//   bam       packed without the ids that begin and end documents, chunks of 32,769 tokens that
//             share none, loss by bin of 1,024 positions, mean over the chunks (appendix H, code)
//   cable     packed, 512 to 16,384, windows of each length, all positions; a rest that fills no
//             window is left out (section 4)
//   dape      packed, the training length to 8,192, the last min(256, length) tokens, 20 batches of
//             8 x (128, 64, 32, 16, 8, 1, 1) windows of 128 to 8,192 (code); the first so many in
//             the order of the text, which is ours
//   asentmax  500 documents of more than 16,384 tokens, 1,024 to 16,384 (appendix G); which
//             positions it does not say: ours are the first n tokens, all targets

#include <cstdint>
#include <string>
#include <vector>

#include "eval/perplexity_text.h"

namespace bamtrain {

inline const std::vector<std::string> kPaperProtocols = {"bam", "cable", "dape", "asentmax"};

struct PaperProtocol {
  PerplexityRequest request;          // but for ids, which are the data's
  bool drops_special_tokens = false;  // of documents, from packed text
};

/// `lengths`, ascending, in place of the paper's where there are any. Error (ExitCode::usage) where
/// the paper has no lengths for this training length; and, unless `counted`, for a length whose
/// number of windows it does not say. REQUIRES: a name of kPaperProtocols.
PaperProtocol paper_protocol(const std::string& name, int64_t training_length,
                             const std::vector<int64_t>& lengths, bool counted);

}  // namespace bamtrain

#pragma once
// RULER's variable tracking: a chain of assignments hidden in noise; all its names have one value.
//
//   Memorize and track the chain(s) of variable assignment hidden in the following
//   text.\n\n{context} \nQuestion: Find all variables that are assigned the value {v} in the text
//   above. Answer: According to the chain(s) of variable assignment in the text above, 5 variables
//   are assigned the value {v}, they are:
//
// with a space at the end. The chain is "VAR A = 12345", then four of "VAR B = VAR A ", inserted in
// order as lines before distinct lines of noise. A solved example precedes it, on its own line with
// its five names at the end. It has names of 3 letters, and as many lines of noise as fit 500
// tokens including 30 for the answer.

#include "prompts/prompt_set.h"

namespace bamtrain {

/// The haystack's size counts lines of noise; 30 tokens are generated; references are the five
/// names, of 5 letters. `needles` only holds lines of the requested chain. Errors as PromptSet.
PromptSet variable_tracking_prompts(int64_t length, uint64_t seed, const TokenCount& count);

}  // namespace bamtrain

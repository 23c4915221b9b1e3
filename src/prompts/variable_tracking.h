#pragma once
// RULER's variable tracking: a chain of assignments hidden in noise, of which all names have one
// value.
//
//   Memorize and track the chain(s) of variable assignment hidden in the following
//   text.\n\n{context} \nQuestion: Find all variables that are assigned the value {v} in the text
//   above. Answer: According to the chain(s) of variable assignment in the text above, 5 variables
//   are assigned the value {v}, they are:
//
// with a space at the end. The chain is "VAR A = 12345", then four of "VAR B = VAR A ", inserted in
// their order as lines before different lines of noise. A solved example stands before, in a line
// of its own with its five names behind: names of 3 letters, as many lines of noise as fit 500
// tokens with the 30 of an answer.

#include "prompts/prompt_set.h"

namespace bamtrain {

/// A line of noise is a unit of the haystack's size; 30 tokens are generated; references are the
/// five names, of 5 letters. Only lines of the chain that is asked for are `needles`. Errors as
/// PromptSet.
PromptSet variable_tracking_prompts(int64_t length, uint64_t seed, const TokenCount& count);

}  // namespace bamtrain

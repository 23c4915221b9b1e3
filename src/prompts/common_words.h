#pragma once
// RULER's common words: a numbered list in which ten words appear more often than the others.
//
//   Below is a numbered list of words. In these words, some appear more often than others. Memorize
//   the ones that appear most often.\n1. word 2. word ...\nQuestion: What are the 10 most common
//   words in the above list? Answer: The top 10 words that appear most often in the list are:
//
// Ten words appear 30 times and the others 3 times, shuffled; lengths below 4,096 have 6 and 1. A
// solved example precedes it, on one line with its ten words numbered at the end: 40 words, 10 and
// 3 times; below 4,096 20 words, 3 and 1 times. (The space before the example's answer is our
// choice.)

#include "prompts/prompt_set.h"

namespace bamtrain {

/// The haystack's size is the number of other words; 120 tokens are generated; references are the
/// ten words. No `needles`. Errors as PromptSet: the words of words.h only fill about 40,000 of
/// Mistral's tokens.
PromptSet common_words_prompts(int64_t length, uint64_t seed, const TokenCount& count);

}  // namespace bamtrain

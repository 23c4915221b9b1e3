#pragma once
// RULER's common words: a numbered list in which ten words appear more often than the others.
//
//   Below is a numbered list of words. In these words, some appear more often than others. Memorize
//   the ones that appear most often.\n1. word 2. word ...\nQuestion: What are the 10 most common
//   words in the above list? Answer: The top 10 words that appear most often in the list are:
//
// Ten words x 30 and the others x 3, shuffled; lengths below 4,096 have x 6 and x 1. A solved
// example stands before, in a line of its own with its ten words behind, numbered: 40 words, x 10
// and x 3; below 4,096 20 words, x 3 and x 1. (Its answer begins behind a space: ours.)

#include "prompts/prompt_set.h"

namespace bamtrain {

/// Another word is a unit of the haystack's size; 120 tokens are generated; references are the ten
/// words. No `needles`. Errors as PromptSet: the words of words.h fill some 40,000 tokens of
/// Mistral's, and no more.
PromptSet common_words_prompts(int64_t length, uint64_t seed, const TokenCount& count);

}  // namespace bamtrain

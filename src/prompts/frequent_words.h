#pragma once
// RULER's frequent words: a text of coded words whose counts follow a power law of their rank.
//
//   Read the following coded text and track the frequency of each coded word. Find the three most
//   frequently appeared coded words. {context}\nQuestion: Do not provide any explanation. Please
//   ignore the dots '....'. What are the three most frequently appeared words in the above coded
//   text? Answer: According to the coded text above, the three most frequently appeared words are:
//
// There are (length - 50) / 50 words of 6 letters. The k-th appears floor(N k^-2 / zeta(2)) times;
// the first is "...". All are shuffled.

#include "prompts/prompt_set.h"

namespace bamtrain {

/// N is the haystack's size; 50 tokens are generated; references are the words of ranks 2 to 4,
/// most frequent first. No `needles`. Errors as PromptSet.
PromptSet frequent_words_prompts(int64_t length, uint64_t seed, const TokenCount& count);

}  // namespace bamtrain

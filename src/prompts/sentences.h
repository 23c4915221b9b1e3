#pragma once
// Splits a text into sentences.

#include <string>
#include <vector>

namespace bamtrain {

/// A sentence ends after '.', '!' or '?' and closing quotes or brackets, if a space follows and
/// then a capital, a digit, or an opening quote or bracket. It does not end after a single capital
/// ("J. Smith") or an abbreviation of a short list (Mr., e.g., ...). The remainder is the last
/// sentence. Joined by single spaces, the sentences are the text again. This plain rule replaces
/// NLTK's trained one, which RULER uses: they differ at abbreviations. REQUIRES: words are
/// separated by single spaces, without spaces at the ends. Empty text has no sentences.
std::vector<std::string> sentences_of(const std::string& text);

}  // namespace bamtrain

#pragma once
// A text cut into sentences.

#include <string>
#include <vector>

namespace bamtrain {

/// A sentence ends behind '.', '!' or '?' and the quotes and brackets that close there, where a
/// space follows and then a capital, a digit, or an opening quote or bracket; but not behind a
/// single capital ("J. Smith"), nor behind an abbreviation of a short list (Mr., e.g., ...). What
/// is left is the last. Joined by single spaces they are the text again. A plain rule in place of
/// NLTK's trained one, which RULER uses: they differ at abbreviations. REQUIRES: words are
/// separated by single spaces, none at the ends. No text, no sentences.
std::vector<std::string> sentences_of(const std::string& text);

}  // namespace bamtrain

#include "model/sequence.h"

#include <algorithm>

namespace bamtrain {

int64_t lay_out_sequence(const int32_t* tokens, int64_t T, std::optional<int64_t> document_start,
                         int64_t window, int32_t* first_key, int32_t* positions, int64_t document) {
  for (int64_t i = 0; i < std::min(document, T); ++i) {
    first_key[i] = static_cast<int32_t>(i);
    positions[i] = 0;
  }
  for (int64_t i = std::max<int64_t>(document, 0); i < T; ++i) {
    if (document_start && tokens[i] == *document_start) document = i;
    const int64_t nearest = window > 0 ? i - window + 1 : document;
    first_key[i] = static_cast<int32_t>(std::max(document, nearest));
    positions[i] = static_cast<int32_t>(i - document);
  }
  return document;
}

void lay_out_both_sides(const int32_t* tokens, int64_t T, int64_t length,
                        std::optional<int64_t> document_start, int64_t window, int32_t* first_key,
                        int32_t* last_key, int32_t* positions) {
  lay_out_sequence(tokens, length, document_start, window, first_key, positions);
  int64_t last = length - 1;  // last key of the document
  for (int64_t i = length - 1; i >= 0; --i) {
    last_key[i] = static_cast<int32_t>(window > 0 ? std::min(last, i + window - 1) : last);
    if (positions[i] == 0) last = i - 1;
  }
  for (int64_t i = length; i < T; ++i) {
    first_key[i] = last_key[i] = static_cast<int32_t>(i);
    positions[i] = 0;
  }
}

}  // namespace bamtrain

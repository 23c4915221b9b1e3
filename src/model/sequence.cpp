#include "model/sequence.h"

#include <algorithm>

namespace bamtrain {

int64_t lay_out_sequence(const int32_t* tokens, int64_t T, std::optional<int64_t> document_start,
                         int64_t window, int32_t* first_key, int32_t* positions, int64_t document) {
  for (int64_t i = 0; i < T; ++i) {
    if (document_start && tokens[i] == *document_start) document = i;
    const int64_t nearest = window > 0 ? i - window + 1 : document;
    first_key[i] = static_cast<int32_t>(std::max(document, nearest));
    positions[i] = static_cast<int32_t>(i - document);
  }
  return document;
}

}  // namespace bamtrain

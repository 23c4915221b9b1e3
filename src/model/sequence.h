#pragma once
// Position and visible keys of each token in a row.

#include <cstdint>
#include <optional>

namespace bamtrain {

/// For T tokens of a sequence writes first_key[i], the first key that row i sees, and positions[i],
/// its absolute position. With `document_start`, a document begins at every such token: attention
/// and positions restart there. `window` > 0 limits rows to the nearest `window` keys. The number
/// of visible keys is n_i = i - first_key[i] + 1. `document`: start of the first token's document
/// relative to these tokens, negative if earlier tokens are part of it. If it is positive, the
/// tokens before it are padding, each a document of its own. Returns the start of the last token's
/// document.
int64_t lay_out_sequence(const int32_t* tokens, int64_t T, std::optional<int64_t> document_start,
                         int64_t window, int32_t* first_key, int32_t* positions,
                         int64_t document = 0);

/// The same for rows that see keys on both sides, to the document's end, within `window` on each
/// side. Also writes last_key[i]. The first `length` tokens, at least one, are the sequence. The
/// rest is padding, each token a document of its own.
void lay_out_both_sides(const int32_t* tokens, int64_t T, int64_t length,
                        std::optional<int64_t> document_start, int64_t window, int32_t* first_key,
                        int32_t* last_key, int32_t* positions);

}  // namespace bamtrain

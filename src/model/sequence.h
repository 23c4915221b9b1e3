#pragma once
// What a row of tokens looks like to attention: which keys each position sees, and its position.

#include <cstdint>
#include <optional>

namespace bamtrain {

/// For T tokens of a sequence writes first_key[i], the first key that row i sees, and positions[i],
/// its absolute position. With `document_start` a document begins at every such token: attention
/// and positions restart there. `window` > 0 limits rows to the nearest `window` keys. The number
/// of visible keys is n_i = i - first_key[i] + 1. The tokens may go on from others: `document` is
/// where the first one's document begins, as keys are counted; past 0 the tokens before it are
/// padding, each a document of its own. Returns where the last one's document does.
int64_t lay_out_sequence(const int32_t* tokens, int64_t T, std::optional<int64_t> document_start,
                         int64_t window, int32_t* first_key, int32_t* positions,
                         int64_t document = 0);

/// The same where rows see keys on both sides, to the document's end, within `window` on each side:
/// last_key[i] too. The first `length` tokens, one at least, are the sequence; each of those
/// behind, padding, is a document of its own.
void lay_out_both_sides(const int32_t* tokens, int64_t T, int64_t length,
                        std::optional<int64_t> document_start, int64_t window, int32_t* first_key,
                        int32_t* last_key, int32_t* positions);

}  // namespace bamtrain

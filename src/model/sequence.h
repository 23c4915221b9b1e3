#pragma once
// What a row of tokens looks like to attention: which keys each position sees, and its position.

#include <cstdint>
#include <optional>

namespace bamtrain {

/// For one sequence of T tokens writes first_key[i], the first key that row i sees, and
/// positions[i], its absolute position. With `document_start` a document begins at every such token
/// and at the sequence's start: attention and positions restart there. `window` > 0 limits rows to
/// the nearest `window` keys. The number of visible keys is n_i = i - first_key[i] + 1.
void lay_out_sequence(const int32_t* tokens, int64_t T, std::optional<int64_t> document_start,
                      int64_t window, int32_t* first_key, int32_t* positions);

}  // namespace bamtrain

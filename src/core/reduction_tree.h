#pragma once
// The sum over processes whose bits do not depend on their number.

#include "core/peer_link.h"

namespace bamtrain {

/// data (n) becomes its sum over all `size` processes, added in the upper levels of
/// AccumulationTree: ranks 2r and 2r + 1 first, then distance 2, 4. Every process receives the same
/// bits, and where each holds the tree sum of its own contiguous groups, they are the bits of one
/// process with all groups. Not-a-number results are NaN everywhere, but their payload may depend
/// on the number of processes.
///
/// `messages` (PeerLink::kSlots * piece), of data's dtype and in memory that the link reaches,
/// holds what is received: messages are of `piece` elements at most, rounded down to a multiple
/// of 64. REQUIRES: `size` is a power of two; all call it with the same sizes.
void tree_all_reduce(PeerLink& link, int rank, int size, const Tensor& data,
                     const Tensor& messages);

}  // namespace bamtrain

#pragma once
// An all-reduce whose result is bitwise identical for any number of processes.

#include "core/peer_link.h"

namespace bamtrain {

/// Replaces data (n) by its sum over all `size` processes, added in the upper levels of
/// AccumulationTree: ranks 2r and 2r + 1 first, then distance 2, 4. The result is bitwise identical
/// on every process. If each holds the tree sum of its own contiguous groups, it is also bitwise
/// identical to that of one process with all groups. NaN results are NaN everywhere, but their
/// payload may depend on the number of processes.
///
/// `messages` (PeerLink::kSlots * piece), of data's dtype and in memory that the link can access,
/// is the receive buffer. A message has at most `piece` elements, rounded down to a multiple of 64.
/// REQUIRES: `size` is a power of two; all processes call it with the same sizes.
void tree_all_reduce(PeerLink& link, int rank, int size, const Tensor& data,
                     const Tensor& messages);

}  // namespace bamtrain
